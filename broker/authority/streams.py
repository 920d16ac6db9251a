"""Asks the owner by streams. Each is of one caller, and carries one question at a time.

To open one costs what an RPC does; a question on an open one costs a third of that (ADR 0035).
Nothing of an answer stays here: each question is answered for itself. A stream ends when a question
on it is given up or not answered well, and answers say which question they are for: none meets
another.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from dataclasses import dataclass
from typing import Final, TypeAlias

from grpc import aio

from broker.authority.decoding import decoded
from broker.domain.call import Caller
from broker.domain.errors import AuthorityResponseInvalidError
from broker.outbound import ANSWER_BYTES_MAX
from broker.owners.v1 import projects_config_service_pb2 as owners

IDLE_MAX: Final = 32
"""How many streams wait for a next question, of all callers together."""

IDLE_S: Final = 5.0
"""For how long one waits, at least; at most it is twice that."""

LIFE_S: Final = 60.0
"""For how long a stream is given questions, so that connections and owners can change."""

Metadata: TypeAlias = tuple[tuple[str, str], ...]
Method: TypeAlias = "aio.StreamStreamMultiCallable[owners.StreamRunAuthorityRequest, bytes]"
_RPC: TypeAlias = "aio.StreamStreamCall[owners.StreamRunAuthorityRequest, bytes]"


@dataclass(slots=True)
class _Stream:
    """One open stream.

    ``opened`` and ``answered``, the last time, are times of the event loop's clock; ``asked`` is
    how many questions there were.
    """

    rpc: _RPC
    opened: float
    answered: float = 0.0
    asked: int = 0

    async def ask(
        self, question: owners.StreamRunAuthorityRequest
    ) -> owners.GetRunAuthorityResponse | None:
        """Return the answer; None where the stream ended without one, and without a refusal."""
        self.asked += 1
        question.number = self.asked
        try:
            await self.rpc.write(question)
        except (asyncio.InvalidStateError, aio.AioRpcError):
            return None  # it ended, and gRPC forgets with which status
        said = await self.rpc.read()
        if not isinstance(said, bytes):
            return None
        answer = decoded(said, owners.StreamRunAuthorityResponse, ANSWER_BYTES_MAX)
        if answer.number != question.number:
            raise AuthorityResponseInvalidError("the owner answered another question")
        return answer.authority


class OwnerStreams:
    """The streams of a process. Construct it inside a running event loop."""

    def __init__(self, method: Method) -> None:
        """Take the streaming method; nothing is opened before a question comes."""
        self._method = method
        self._loop = asyncio.get_running_loop()
        self._idle: defaultdict[Metadata, list[_Stream]] = defaultdict(list)
        self._waiting = 0
        self._closed = False
        self._sweep: asyncio.TimerHandle | None = None

    async def ask(
        self, caller: Caller, question: owners.StreamRunAuthorityRequest
    ) -> owners.GetRunAuthorityResponse | None:
        """Return the answer to one question; None where no stream took it.

        A stream that waited, and ended in peace before it answered, is followed by another; a new
        one is not.

        Raises:
            AuthorityResponseInvalidError: larger than 256 KiB, undecodable, or the answer to
                another question. Not retryable.
            grpc.aio.AioRpcError: the owner ended the stream with this status.
            asyncio.CancelledError: the question is given up, or the channel was closed.
        """
        who = shown(caller)
        while (stream := self._taken(who)) is not None:
            answer = await self._asked(who, stream, question)
            if answer is not None:
                return answer
        stream = _Stream(self._method(metadata=who), self._loop.time())
        return await self._asked(who, stream, question)

    def close(self) -> None:
        """End the streams that wait; from now on none does."""
        self._closed = True
        self._end_waiting(answered_before=self._loop.time())
        if self._sweep is not None:
            self._sweep.cancel()

    async def _asked(
        self, who: Metadata, stream: _Stream, question: owners.StreamRunAuthorityRequest
    ) -> owners.GetRunAuthorityResponse | None:
        answer = None
        try:
            answer = await stream.ask(question)
        except asyncio.CancelledError:
            if stream.asked == 1:  # it may have waited for a place that others keep
                self._end_waiting(answered_before=self._loop.time())
            raise
        finally:
            if answer is None:
                stream.rpc.cancel()
        if answer is not None:
            self._put(who, stream)
        return answer

    def _taken(self, who: Metadata) -> _Stream | None:
        streams = self._idle.get(who)
        while streams:
            self._waiting -= 1
            stream = streams.pop()
            if stream.rpc.done():
                continue
            if self._loop.time() - stream.opened <= LIFE_S:
                return stream
            stream.rpc.cancel()
        return None

    def _put(self, who: Metadata, stream: _Stream) -> None:
        if self._closed or self._waiting >= IDLE_MAX:
            stream.rpc.cancel()
            return
        stream.answered = self._loop.time()
        self._idle[who].append(stream)
        self._waiting += 1
        if self._sweep is None:
            self._sweep = self._loop.call_later(IDLE_S, self._on_sweep)

    def _on_sweep(self) -> None:
        self._end_waiting(answered_before=self._loop.time() - IDLE_S)
        self._sweep = self._loop.call_later(IDLE_S, self._on_sweep) if self._idle else None

    def _end_waiting(self, *, answered_before: float) -> None:
        """End those that wait since then or longer, and forget their callers."""
        for who, streams in list(self._idle.items()):
            for stream in [each for each in streams if each.answered <= answered_before]:
                stream.rpc.cancel()
                streams.remove(stream)
                self._waiting -= 1
            if not streams:
                del self._idle[who]


def shown(caller: Caller) -> Metadata:
    """Return what says who asks. Who shows the same in every byte shares streams."""
    bearer = ("authorization", caller.bearer)
    if caller.tenant_selector is None:
        return (bearer,)
    return (bearer, ("x-tenant", caller.tenant_selector))
