"""One call: queries and batches on one partition, in bounded time, after a look at the marker."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from azure.cosmos.aio import ContainerProxy
from azure.cosmos.exceptions import CosmosBatchOperationError, CosmosResourceNotFoundError

from providers.cosmos import errors, keys
from providers.cosmos.batch import Batch
from providers.cosmos.connections import Connections, Opened
from providers.cosmos.options import CosmosOptions
from providers.errors import (
    OutcomeUnknownError,
    ProviderError,
    ProviderUnavailableError,
)
from providers.marker import check_marker
from providers.model import ResourceIdentity

T = TypeVar("T")
Document = dict[str, Any]

PAGE_ITEMS = 1_000
ATTEMPTS = 5
"""How often a call begins anew because others write meanwhile."""


@dataclass(frozen=True, slots=True)
class Query:
    """What to select of one partition.

    Attributes:
        where: The condition, with parameters.
        given: The parameters by name, the at sign left out.
        select: What is selected of each document.
        order: What it is ordered by, or nothing.
        top: How many come at most.
    """

    where: str
    given: Mapping[str, object]
    select: str = "*"
    order: str = ""
    top: int | None = None

    @property
    def text(self) -> str:
        """The query as the service takes it."""
        top = "" if self.top is None else f"TOP {self.top} "
        order = f" ORDER BY {self.order}" if self.order else ""
        # Values are parameters; the words are ours.
        return f"SELECT {top}{self.select} FROM c WHERE {self.where}{order}"  # noqa: S608


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
        """Give what a query selects page by page, each a request."""
        found = self.container.query_items(
            query.text,
            parameters=[
                {"name": f"@{name}", "value": value} for name, value in query.given.items()
            ],
            partition_key=self.partition,
            max_item_count=items,
        )
        async for page in found.by_page():
            yield [each async for each in page]

    async def all(self, query: Query) -> list[Any]:
        """Return all that a query selects; pages of several may be of several moments."""
        return [each async for page in self.pages(query) for each in page]

    async def snapshot(self, query: Query) -> list[Any]:
        """Return all that a query selects at one moment; ``select`` must name ``_etag``.

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
        select = "c.id, c._etag"
        again = await self.all(Query(query.where, query.given, select, query.order, query.top))
        return _etags(again[:first]) == _etags(found)

    async def commit(self, batch: Batch) -> bool:
        """Apply a batch, or tell that something is not as it was read, and nothing was applied.

        Raises:
            OutcomeUnknownError: It may have been applied. Retryable.
            ProviderError: It was not.
        """
        self.sent.in_doubt = True
        try:
            results = await self.container.execute_item_batch(batch.operations, self.partition)
        except CosmosBatchOperationError as error:
            return self._refused(error)
        done = [each for each in results if each.get("statusCode") in errors.DONE]
        if len(done) != len(batch.operations) or len(results) != len(done):
            raise OutcomeUnknownError("the service answers a batch in part")
        self.sent.in_doubt = False
        return True

    def _refused(self, error: CosmosBatchOperationError) -> bool:
        status = int(error.status_code or 0)
        self.sent.in_doubt = errors.is_unknown(status)
        if status in errors.MOVED:
            return False
        told = error.operation_responses[error.error_index]
        raise errors.translate_status(
            status, int(told.get("subStatusCode", 0)), error.headers or {}
        ) from error


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
            await self._check_marker(opened)
            return await work(Link(opened.container, partition, sent))

        return await self._bounded(inside, sent, timeout)

    async def ready(self, *, timeout: float) -> None:
        """Return when the account answers and the marker is the configured one."""
        await self.look(_nothing, timeout=timeout)

    async def look(self, work: Callable[[Opened], Awaitable[T]], *, timeout: float) -> T:
        """Do work on account and container, and look at the marker whatever is known of it."""

        async def inside(opened: Opened) -> T:
            answer = await work(opened)
            await self._read_marker(opened)
            return answer

        return await self._bounded(inside, Sent(), timeout)

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

    async def _check_marker(self, opened: Opened) -> None:
        now = asyncio.get_running_loop().time()
        if self._seen is None or now - self._seen >= self._marker_age:
            await self._read_marker(opened)

    async def _read_marker(self, opened: Opened) -> None:
        now, self._seen = asyncio.get_running_loop().time(), None
        marker: Mapping[str, Any] = {}
        try:
            marker = await opened.container.read_item(keys.MARKER_ID, keys.MARKER_PARTITION)
        except CosmosResourceNotFoundError as error:
            if error.sub_status:
                raise
        check_marker(self.resource, marker.get("resourceId"), marker.get("generation"))
        self._seen = now


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


async def _nothing(opened: Opened) -> None:
    """Ask for nothing beside the marker."""


def _etags(documents: Sequence[Document]) -> list[tuple[str, str]]:
    return sorted((each["id"], each["_etag"]) for each in documents)
