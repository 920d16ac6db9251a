"""One call: queries and batches on one partition, in bounded time, after a look at the marker."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosResourceNotFoundError

from providers.cosmos import errors, fitness, keys
from providers.cosmos.batch import Batch
from providers.cosmos.connections import Connections, Opened
from providers.cosmos.options import CosmosOptions
from providers.errors import (
    OutcomeUnknownError,
    ProviderError,
    ProviderUnavailableError,
    StoredDataInvalidError,
)
from providers.marker import check_marker
from providers.model import ResourceIdentity

T = TypeVar("T")
Document = dict[str, Any]

_ALWAYS = "c.id, c._etag, c.doc, c.ttl"
PAGE_ITEMS = 1_000
ATTEMPTS = 5
"""How often a call begins anew because others write meanwhile."""


@dataclass(frozen=True, slots=True)
class Query:
    """What to select of one partition.

    Attributes:
        where: The condition, with parameters.
        given: The parameters by name, the at sign left out.
        select: What is selected of each document beside what is looked at in every one, or ``*``.
        order: What it is ordered by, or nothing.
        top: How many come at most.
    """

    where: str
    given: Mapping[str, object]
    select: str = ""
    order: str = ""
    top: int | None = None

    @property
    def text(self) -> str:
        """The query as the service takes it."""
        top = "" if self.top is None else f"TOP {self.top} "
        order = f" ORDER BY {self.order}" if self.order else ""
        columns = f"{_ALWAYS}, {self.select}" if self.select else _ALWAYS
        columns = "*" if self.select == "*" else columns
        # Values are parameters; the words are ours.
        return f"SELECT {top}{columns} FROM c WHERE {self.where}{order}"  # noqa: S608


@dataclass(slots=True)
class Sent:
    """Whether a write was sent whose answer did not come, or was not sound."""

    in_doubt: bool = False


@dataclass(frozen=True, slots=True)
class Link:
    """The container, for one call on one partition."""

    container: ContainerProxy
    partition: str
    sent: Sent

    async def pages(self, query: Query, *, items: int = PAGE_ITEMS) -> AsyncIterator[list[Any]]:
        """Give what a query selects page by page, each a request.

        Raises:
            StoredDataInvalidError: A document is none of the adapter's. Not retryable.
            UnsoundAnswerError: A page holds no documents, or was there before.
        """
        seen: set[str] = set()
        found = self.container.query_items(
            query.text,
            parameters=[
                {"name": f"@{name}", "value": value} for name, value in query.given.items()
            ],
            partition_key=self.partition,
            max_item_count=items,
        )
        with errors.sound():
            async for page in found.by_page():
                documents = [_sound(each) async for each in page]
                ids = {each["id"] for each in documents}
                if documents and ids <= seen:
                    raise errors.UnsoundAnswerError("a query goes round in a circle")
                seen |= ids
                yield documents

    async def all(self, query: Query) -> list[Any]:
        """Return all that a query selects; pages of several may be of several moments."""
        return [each async for page in self.pages(query) for each in page]

    async def snapshot(self, query: Query) -> list[Any]:
        """Return all that a query selects at one moment.

        A page is of one moment. Where there are several, what was read is compared with what is
        there afterwards: nothing of it has changed meanwhile, or all is read again.

        Raises:
            ProviderUnavailableError: Others write all the time. Retryable.
        """
        for _ in range(ATTEMPTS):
            pages = [page async for page in self.pages(query)]
            found = [each for page in pages for each in page]
            if len(pages) <= 1 or await self.is_unchanged(query, found):
                return found
        raise ProviderUnavailableError("others write faster than can be read")

    async def is_unchanged(
        self, query: Query, found: Sequence[Document], *, first: int | None = None
    ) -> bool:
        """Tell whether a query selects these documents still, none of them replaced.

        ``first``: so many of them are meant, from the first on in the order of the query.
        """
        again = await self.all(Query(query.where, query.given, "", query.order, query.top))
        return _etags(again[:first]) == _etags(found)

    async def commit(self, batch: Batch) -> bool:
        """Apply a batch, or tell that something is not as it was read, and nothing was applied.

        Raises:
            OutcomeUnknownError: It may have been applied. Retryable.
            ProviderError: It was not.
        """
        self.sent.in_doubt = True
        with errors.sound():
            try:
                results = await self.container.execute_item_batch(batch.operations, self.partition)
            except CosmosBatchOperationError as error:
                return self._refused(error, len(batch.operations))
            done = [each for each in results if each.get("statusCode") in errors.DONE]
        if len(done) != len(batch.operations) or len(results) != len(done):
            raise OutcomeUnknownError("the service answers a batch in part")
        self.sent.in_doubt = False
        return True

    def _refused(self, error: CosmosBatchOperationError, count: int) -> bool:
        status, told = int(error.status_code or 0), error.operation_responses
        substatus = int(told[error.error_index].get("subStatusCode") or 0)
        if len(told) != count:
            raise OutcomeUnknownError("the service answers a batch in part")
        self.sent.in_doubt = errors.is_unknown(status)
        if status in errors.MOVED:
            return False
        raise errors.translate_status(status, substatus, error.headers or {}) from error


class Calls:
    """Makes calls on one resource."""

    def __init__(self, options: CosmosOptions) -> None:
        """Keep the options; nothing is opened."""
        self.resource = ResourceIdentity(options.resource_id, options.generation)
        self.connections = Connections(options)
        self._marker_age = options.marker_ms / 1000
        self._rid = ""
        self._seen: float | None = None

    async def run(
        self, partition: str, work: Callable[[Link], Awaitable[T]], *, timeout: float
    ) -> T:
        """Do work on a partition.

        Raises:
            OutcomeUnknownError: A batch was sent and no sound answer came. Retryable.
            ProviderError: As the clauses say. Nothing was written.
        """
        sent = Sent()

        async def inside(opened: Opened) -> T:
            if self._is_old():
                await self._look(opened)
            return await work(Link(opened.container, partition, sent))

        return await self._bounded(inside, sent, timeout)

    async def ready(self, *, timeout: float) -> None:
        """Return when the account answers and the marker is the configured one."""

        async def inside(opened: Opened) -> None:
            await (self._look if self._is_old() else self._read_marker)(opened)

        await self._bounded(inside, Sent(), timeout)

    async def look(self, *, timeout: float) -> None:
        """Look at account, container and marker, whatever is known of them."""
        await self._bounded(self._look, Sent(), timeout)

    async def _bounded(
        self, work: Callable[[Opened], Awaitable[T]], sent: Sent, timeout: float
    ) -> T:
        self.connections.check_open()
        try:
            async with asyncio.timeout(timeout):
                return await work(await self.connections.get())
        except ProviderError as error:
            if sent.in_doubt and not isinstance(error, OutcomeUnknownError):
                raise OutcomeUnknownError("no sound answer to a write that was sent") from error
            raise
        except errors.DRIVER as error:
            self.connections.check_open()
            if sent.in_doubt and errors.is_in_doubt(error):
                raise OutcomeUnknownError("no answer to a write that was sent") from error
            raise errors.translate(error) from error
        except (RuntimeError, asyncio.CancelledError):
            # Closing ends the session under the call, and cancels who waits for a connection.
            if not _is_cancelled():
                self.connections.check_open()
            raise

    def _is_old(self) -> bool:
        now = asyncio.get_running_loop().time()
        return self._seen is None or now - self._seen >= self._marker_age

    async def _look(self, opened: Opened) -> None:
        now, self._seen = asyncio.get_running_loop().time(), None
        await fitness.look(opened)
        await self._read_marker(opened)
        self._seen = now

    async def _read_marker(self, opened: Opened) -> None:
        seen, self._seen = self._seen, None
        marker: Mapping[str, Any] = {}
        try:
            with errors.sound():
                marker = await opened.container.read_item(keys.MARKER_ID, keys.MARKER_PARTITION)
            marker = _sound(marker)
        except CosmosResourceNotFoundError as error:
            if error.sub_status:
                raise
        check_marker(self.resource, marker.get("resourceId"), marker.get("generation"))
        self._seen = seen


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def _sound(document: Any) -> Document:
    """Return a document that is one, and the adapter's.

    Raises:
        UnsoundAnswerError: It lacks what the service gives to each.
        StoredDataInvalidError: It is somebody else's, or was made to expire. Not retryable.
    """
    if not isinstance(document, dict) or any(
        type(document.get(name)) is not str for name in ("id", "_etag")
    ):
        raise errors.UnsoundAnswerError("an answer holds something that is no document")
    if type(document.get("doc")) is not str:
        raise StoredDataInvalidError("a stored document says not what it is")
    if document.get("ttl") is not None:
        raise StoredDataInvalidError("a stored document is to expire")
    return document


def _etags(documents: Sequence[Document]) -> list[tuple[str, str]]:
    return sorted((each["id"], each["_etag"]) for each in documents)
