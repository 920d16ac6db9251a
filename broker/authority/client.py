"""Asks the owner: an RPC or a place in a stream for each question, nothing kept."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import TypeAlias, TypeVar

import grpc
from grpc import aio

from broker.authority.decoding import decoded
from broker.authority.streams import Metadata, OwnerStreams, shown
from broker.domain.call import Call, ProjectScope, RunScope
from broker.domain.errors import (
    AuthorityResponseInvalidError,
    AuthorityUnavailableError,
    BrokerError,
    DeadlineExceededError,
    PermissionMissingError,
    TokenRejectedByOwnerError,
)
from broker.outbound import ANSWER_BYTES_MAX, PeerSettings, open_channel
from broker.owners.v1 import projects_config_service_pb2 as owners

_SERVICE = owners.DESCRIPTOR.services_by_name["ProjectsConfigService"]

_Request = TypeVar(
    "_Request",
    owners.GetRunAuthorityRequest,
    owners.GetProjectAuthorityRequest,
    owners.GetCallerAuthorityRequest,
)
T = TypeVar("T")
_Method: TypeAlias = "aio.UnaryUnaryMultiCallable[_Request, bytes]"

_PROJECT_UNKNOWN = frozenset({grpc.StatusCode.PERMISSION_DENIED, grpc.StatusCode.NOT_FOUND})
_UNAVAILABLE = frozenset(
    {
        grpc.StatusCode.UNAVAILABLE,
        grpc.StatusCode.DEADLINE_EXCEEDED,
        grpc.StatusCode.RESOURCE_EXHAUSTED,
        # An owner that ends, or trips over itself, says one of these; a retry may meet it well.
        grpc.StatusCode.CANCELLED,
        grpc.StatusCode.INTERNAL,
        grpc.StatusCode.UNKNOWN,
    }
)

RUN_BYTES_MAX = 4 * 1024
"""How much longer an answer may be for each run whose selection was asked for."""

_TIMER_SLACK_S = 0.01
"""gRPC's timer and the event loop's may fire this far apart."""


class OwnerClient:
    """The Projects & Config owner, reached with each caller's own token (004-02).

    One channel serves all calls at the same time. With ``streams``, questions about one run go by
    StreamRunAuthority; one that no stream took goes by GetRunAuthority, in the time that is left.
    Construct it inside a running event loop and close it there.

    Raises:
        OSError: a certificate file cannot be read.
    """

    def __init__(self, settings: PeerSettings, *, streams: bool = False) -> None:
        self._timeout_s = settings.timeout_s
        self._loop = asyncio.get_running_loop()
        self._channel = open_channel(settings)
        self._streams = _streams(self._channel) if streams else None
        self._run_authority: _Method[owners.GetRunAuthorityRequest] = self._channel.unary_unary(
            _method("GetRunAuthority"),
            request_serializer=owners.GetRunAuthorityRequest.SerializeToString,
        )
        self._project_authority: _Method[owners.GetProjectAuthorityRequest] = (
            self._channel.unary_unary(
                _method("GetProjectAuthority"),
                request_serializer=owners.GetProjectAuthorityRequest.SerializeToString,
            )
        )
        self._caller_authority: _Method[owners.GetCallerAuthorityRequest] = (
            self._channel.unary_unary(
                _method("GetCallerAuthority"),
                request_serializer=owners.GetCallerAuthorityRequest.SerializeToString,
            )
        )

    async def run_authority(
        self, call: Call, scope: RunScope, permission: str
    ) -> owners.GetRunAuthorityResponse:
        """Ask once for the caller's authority on a run and for the run's selection.

        The answer is decoded and nothing more is known about it. ``permission`` is the one that
        the refusal names when the caller does not know the project.

        Raises:
            TokenRejectedByOwnerError, PermissionMissingError: the owner says so. Not retryable.
            AuthorityResponseInvalidError: larger than 256 KiB, undecodable, or a status that the
                owner may not give. Not retryable.
            AuthorityUnavailableError: unreachable, too slow or overloaded. Retryable.
            DeadlineExceededError: the call's own time ran out.
        """
        seconds = self._seconds(call)
        if self._streams is not None:
            began = self._loop.time()
            answer = await _streamed(self._streams, call, scope, permission, seconds)
            if answer is not None:
                return answer
            seconds -= self._loop.time() - began
        request = owners.GetRunAuthorityRequest(project_id=scope.project_id, run_id=scope.run_id)
        outcome = await _ask(self._run_authority, request, call, permission, seconds)
        return decoded(outcome, owners.GetRunAuthorityResponse, ANSWER_BYTES_MAX)

    async def project_authority(
        self, call: Call, scope: ProjectScope, permission: str
    ) -> owners.GetProjectAuthorityResponse:
        """Ask once for the caller's authority on a project and for selections of its runs.

        A scope names at most 500 runs, or none. The answer may be 256 KiB and 4 KiB for each run.

        Raises:
            What ``run_authority`` raises.
        """
        request = owners.GetProjectAuthorityRequest(
            project_id=scope.project_id, run_ids=scope.run_ids
        )
        seconds = self._seconds(call)
        outcome = await _ask(self._project_authority, request, call, permission, seconds)
        bytes_max = ANSWER_BYTES_MAX + RUN_BYTES_MAX * len(scope.run_ids)
        return decoded(outcome, owners.GetProjectAuthorityResponse, bytes_max)

    async def caller_authority(
        self, call: Call, permission: str
    ) -> owners.GetCallerAuthorityResponse:
        """Ask once for the caller's grants, without naming a project.

        Raises:
            What ``run_authority`` raises.
        """
        request = owners.GetCallerAuthorityRequest()
        seconds = self._seconds(call)
        outcome = await _ask(self._caller_authority, request, call, permission, seconds)
        return decoded(outcome, owners.GetCallerAuthorityResponse, ANSWER_BYTES_MAX)

    async def aclose(self) -> None:
        """Close the channel; calls in flight fail as unavailable."""
        if self._streams is not None:
            self._streams.close()
        await self._channel.close()

    def _seconds(self, call: Call) -> float:
        left = call.remaining()
        if left <= 0.0:
            raise DeadlineExceededError(outcome_unknown=call.commit_sent)
        return min(self._timeout_s, left)


async def _streamed(
    streams: OwnerStreams, call: Call, scope: RunScope, permission: str, seconds: float
) -> owners.GetRunAuthorityResponse | None:
    """Return the answer of a stream; None where none took the question."""
    question = owners.StreamRunAuthorityRequest(
        project_id=scope.project_id, run_id=scope.run_id, request_id=call.request_id
    )
    outcome: owners.GetRunAuthorityResponse | grpc.StatusCode | None
    try:
        async with asyncio.timeout(seconds):
            outcome = await _outcome(streams.ask(call.caller, question))
    except TimeoutError:
        outcome = grpc.StatusCode.DEADLINE_EXCEEDED
    return _taken(outcome, call, permission)


async def _ask(
    method: _Method[_Request], request: _Request, call: Call, permission: str, seconds: float
) -> bytes:
    asking = _single(method, request, seconds, _metadata(call))
    return _taken(await _outcome(asking), call, permission)


async def _single(
    method: _Method[_Request], request: _Request, seconds: float, metadata: Metadata
) -> bytes:
    answer: bytes = await method(request, timeout=seconds, metadata=metadata)
    return answer


async def _outcome(asking: Awaitable[T]) -> T | grpc.StatusCode:
    # Statuses are handed back, not chained: the owner's text could repeat the token.
    try:
        return await asking
    except aio.AioRpcError as error:
        return error.code()
    except (aio.UsageError, asyncio.CancelledError):
        if _given_up():
            raise
        return grpc.StatusCode.UNAVAILABLE  # the channel was closed


def _given_up() -> bool:
    # A frame that held its task would keep the call, through the error's traceback.
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _taken(outcome: T | grpc.StatusCode, call: Call, permission: str) -> T:
    if isinstance(outcome, grpc.StatusCode):
        raise _refusal(outcome, call, permission)
    return outcome


def _streams(channel: aio.Channel) -> OwnerStreams:
    form = owners.StreamRunAuthorityRequest
    path = _method("StreamRunAuthority")
    return OwnerStreams(channel.stream_stream(path, request_serializer=form.SerializeToString))


def _method(name: str) -> str:
    return f"/{_SERVICE.full_name}/{_SERVICE.methods_by_name[name].name}"


def _metadata(call: Call) -> Metadata:
    return (*shown(call.caller), ("x-request-id", call.request_id))


def _refusal(status: grpc.StatusCode, call: Call, permission: str) -> BrokerError:
    if status is grpc.StatusCode.UNAUTHENTICATED:
        return TokenRejectedByOwnerError("the owner of projects does not accept the token")
    if status in _PROJECT_UNKNOWN:
        return PermissionMissingError(permission)
    if status not in _UNAVAILABLE:
        return AuthorityResponseInvalidError("the owner answered with an unexpected status")
    if status is grpc.StatusCode.DEADLINE_EXCEEDED and call.remaining() <= _TIMER_SLACK_S:
        return DeadlineExceededError(outcome_unknown=call.commit_sent)
    return AuthorityUnavailableError("the owner of projects cannot be asked now; try again")
