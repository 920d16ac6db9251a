"""One call: one script, in one round trip, with a look at the server's settings beside it.

Scripts cannot see settings, nor the rights of the user that the server reads its file back as, so
the commands that read them ride along. A read with a setting that is not fit is refused; a write
that was applied under one is not acknowledged: it may be lost.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from providers.documents import to_json
from providers.errors import (
    OutcomeUnknownError,
    ProviderError,
    ResourceMismatchError,
    StoredDataInvalidError,
)
from providers.marker import check_marker
from providers.model import ProjectKey, ResourceIdentity
from providers.redis import errors, keys
from providers.redis.connections import Command, Connections, Link, Reply
from providers.redis.fitness import (
    check_loading,
    check_rights,
    check_settings,
    loading_questions,
    unfit,
)
from providers.redis.options import RedisOptions
from providers.redis.scripts import WRITING, Script

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Call:
    """What a script is run with: a project's keys, a request as JSON, and documents to store."""

    script: Script
    digest: str
    request: bytes
    documents: Sequence[bytes] = ()


@dataclass(slots=True)
class _Sent:
    """Whether a write was sent whose answer did not come."""

    in_doubt: bool = False

    async def exchange(self, link: Link, commands: Sequence[Command]) -> list[Reply]:
        """Return the replies to commands, of which one may write: it is in doubt meanwhile."""
        self.in_doubt = True
        replies = await link.exchange(commands)
        self.in_doubt = False
        return replies


class Calls:
    """Runs scripts for one resource."""

    def __init__(self, options: RedisOptions) -> None:
        """Keep the options; nothing is opened."""
        self.resource = ResourceIdentity(options.resource_id, options.generation)
        self.connections = Connections(options, self._warm)
        self._prefix = options.key_prefix
        self._database = options.database
        self._marker = keys.marker_value(self.resource)
        self._user = options.username or "default"
        # How often it was doubted that the append-only file holds all, as it is before the first
        # look; and which of these doubts a later look has cleared.
        self._doubts, self._cleared = 1, 0
        self._writes = 0

    async def read(self, call: Call, *, timeout: float) -> list[Any]:
        """Return what a script that only reads answers.

        Raises:
            ProviderError: As the clauses say. Nothing was written.
        """
        return await self._bounded(partial(self._run, call, _Sent()), timeout)

    async def write(self, call: Call, *, timeout: float) -> list[Any]:
        """Return what a script that writes answers.

        Raises:
            OutcomeUnknownError: It was sent and no answer came, or it was applied by a server whose
                settings let it be lost. Retryable.
            ProviderError: As the clauses say. Nothing was written.
        """
        sent = _Sent()
        try:
            return await self._bounded(partial(self._run, call, sent), timeout)
        except ProviderError as error:
            if sent.in_doubt:
                raise OutcomeUnknownError("no sound answer to a write that was sent") from error
            raise

    async def look(self, *, timeout: float) -> None:
        """Look at the server through a connection of its own, and return when it is fit."""
        self.connections.lender.check_open()
        try:
            async with asyncio.timeout(timeout):
                async with self.connections.fresh() as link:
                    await link.load_scripts()
                    await self._ready(link)
        except errors.DRIVER as error:
            raise errors.translate(error) from errors.bare(error)

    async def ready(self, *, timeout: float) -> None:
        """Return when the server answers and is fit."""
        await self._bounded(self._ready, timeout)

    async def _bounded(self, work: Callable[[Link], Awaitable[T]], timeout: float) -> T:
        lender = self.connections.lender
        lender.check_open()
        try:
            async with asyncio.timeout(timeout):
                return await lender.lend(work, sound_after=(ProviderError,))
        except errors.DRIVER as error:
            lender.check_open()
            raise errors.translate(error) from errors.bare(error)

    async def _warm(self, link: Link) -> None:
        """Prepare a new connection; a server that started again may have left something out."""
        await link.load_scripts()
        await self._check_loading(link)

    async def _check_loading(self, link: Link) -> None:
        if asked := self._loading_questions(link):
            check_loading(await link.exchange(asked))

    def _loading_questions(self, link: Link) -> list[Command]:
        return loading_questions(link, keys.base_key(self._prefix, ""))

    async def _ready(self, link: Link) -> None:
        await self._run(nothing(), _Sent(), link)
        await check_rights(link, self._user, keys.base_key(self._prefix, ""))
        await self._check_loading(link)

    async def _run(self, call: Call, sent: _Sent, link: Link) -> list[Any]:
        doubts, writes = self._doubts, self._writes
        commands = [self._command(link, call), link.settings]
        if call.script in WRITING:
            commands += self._loading_questions(link)
        replies = await sent.exchange(link, commands)
        if errors.code_of(replies[0]) == errors.NO_SCRIPT:
            # The server forgot all scripts since this connection was opened, and ran none.
            await link.load_scripts()
            replies = await sent.exchange(link, commands)
        answer, settings, *loading = replies
        if errors.code_of(answer) == errors.UNCLEAR:
            await check_rights(link, self._user, keys.base_key(self._prefix, call.digest))
        sent.in_doubt = not errors.is_whole(answer)
        payload = self._payload(answer)
        self._cleared = max(self._cleared, doubts)
        sent.in_doubt = True
        self._count(payload.pop(0), writes)
        check_settings(settings)
        check_loading(loading)
        sent.in_doubt = False
        return payload

    def _command(self, link: Link, call: Call) -> Command:
        return (
            "EVALSHA",
            link.scripts[call.script].digest,
            3,
            keys.marker_key(self._prefix),
            keys.base_key(self._prefix, call.digest),
            keys.writes_key(self._prefix),
            self._marker,
            self._database,
            self._seen(link),
            keys.tag_of(call.digest),
            call.request,
            *call.documents,
        )

    def _seen(self, link: Link) -> str:
        """Return what a script cannot know of the server."""
        fields = "fields" if link.fields_expire else ""
        return f"{fields} doubted" if self._cleared < self._doubts else fields

    def _payload(self, answer: Reply) -> list[Any]:
        """Return what a script found, or raise what it refused with."""
        if isinstance(answer, Exception):
            raise errors.translate(answer) from errors.bare(answer)
        payload: list[Any]
        verdict, *payload = answer
        if verdict == b"marker":
            raise self._mismatch(payload[0])
        if verdict == b"unfit":
            self._doubts += 1
            raise unfit(payload[0])
        if verdict == b"damaged":
            raise StoredDataInvalidError(f"stored data is damaged: {payload[0].decode()}")
        return payload

    def _count(self, writes: int, before: int) -> None:
        """Refuse a store that holds fewer writes than were seen before it was asked.

        Raises:
            ResourceMismatchError: It does: it was emptied, or restored. Not retryable.
        """
        if writes < before:
            raise ResourceMismatchError(
                "the live resource holds fewer writes than were seen in it: it was emptied or put"
                " back, and is another generation"
            )
        self._writes = max(self._writes, writes)

    def _mismatch(self, marker: bytes | None) -> ProviderError:
        found = keys.marker_of(marker)
        try:
            check_marker(self.resource, *found)
        except ResourceMismatchError as error:
            return error
        return StoredDataInvalidError("the marker is written in another way")


def nothing() -> Call:
    """Return the call that asks for nothing."""
    return Call(Script.READY, "", b"null")


def project_call(
    script: Script, project: ProjectKey, request: object, documents: Sequence[bytes] = ()
) -> Call:
    """Return the call of a script on the keys of a project."""
    return Call(script, keys.project_digest(project), to_json(request), documents)
