"""The way of a call: check ①, field checks, binding, provider, check ②, in this order, always.

No outcome of a provider call leaves before check ② has passed: neither a result nor a failure
(004-15). A replay needs a check that began after its receipt was read.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Final, TypeVar

from broker.domain.authority import KNOWLEDGE, Authorized, Need
from broker.domain.call import Call, ProjectScope, RunScope
from broker.domain.errors import (
    BrokerError,
    ConcurrentWriteError,
    DeadlineExceededError,
    StaleRevisionError,
    TombstonedError,
)
from broker.domain.idempotency import check_same_request
from broker.domain.ports import AuthorityPort, BindingPort, Bound
from broker.domain.requests import ScopeInput
from broker.services.entries import Entries
from broker.services.indexing import Index, indexed
from broker.services.loading import answered, joined, with_met
from providers.capabilities import Capability
from providers.entries import RecallEntry
from providers.errors import OutcomeUnknownError, ProviderError, StoredDataInvalidError
from providers.interface import IMemoryProvider
from providers.model import (
    IdempotencyReceipt,
    ProjectKey,
    ReceiptKey,
    Revision,
    WriteSet,
)
from providers.requests import (
    AlreadyExists,
    ClaimTaken,
    CommitOutcome,
    Committed,
    Loaded,
    LoadRequest,
    Replayed,
    StaleRevision,
    Tombstoned,
)

T = TypeVar("T")

ATTEMPTS_MAX: Final = 8
"""How often a write is decided before contention is told to its caller."""

DECISIONS_MAX: Final = 4
"""How often an attempt decides: keys may have to be loaded first, and then who holds them."""

PAUSE_S: Final = 0.01
"""Half of the longest pause before the second attempt; it doubles with each one."""


@dataclass(frozen=True, slots=True)
class Access:
    """One call that passed check ① and its field checks, and the provider its run is pinned to."""

    authorized: Authorized
    need: Need
    bound: Bound

    @property
    def call(self) -> Call:
        """The call itself."""
        return self.authorized.call

    @property
    def project(self) -> ProjectKey:
        """The root of every key this call may touch; the tenant is the owner's word."""
        return ProjectKey(self.authorized.tenant_id, self.authorized.scope.project_id)

    @property
    def keeps_vectors(self) -> bool:
        """Whether the provider of the run keeps vectors."""
        return Capability.VECTORS in self.bound.capabilities

    def timeout(self) -> float:
        """Return the seconds left.

        Raises:
            DeadlineExceededError: none are left; nothing was written by this call.
        """
        remaining = self.call.remaining()
        if remaining <= 0.0:
            raise DeadlineExceededError(outcome_unknown=False)
        return remaining


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write: its identity for retries, what it loads, and the pure decision over that.

    ``decide`` gets the fresher of the two authority answers and is called again after contention.
    Where it has to know more it answers with what else to load, and is called again with that, too.
    Of every key that was asked for it finds an entry in ``Loaded.keys``: ``FREE`` where nothing
    holds it.
    ``exists`` makes the refusal for ids of the caller's that exist already, from the record of the
    write set that meets one; without it such an id is one of ours, and the write is decided again
    with others. ``prepare`` reads more, by what was loaded, before each decision, and gives back
    all that is known then. With ``own_revisions`` the caller expects no revision: a stale one was
    read here, and is read again. With ``blind`` nothing is loaded at first: where the commit is
    refused, ``load`` is asked for, and the write is decided again (ADR 0036).
    """

    method: str
    key: ReceiptKey
    fingerprint: str
    load: LoadRequest
    decide: Callable[[Loaded, Authorized], WriteSet | LoadRequest]
    exists: Callable[[str], BrokerError] | None = None
    prepare: Callable[[Loaded], Awaitable[Loaded]] | None = None
    own_revisions: bool = False
    blind: bool = False


@dataclass(frozen=True, slots=True)
class Settled:
    """What a write came to: what it committed, or what the earlier request's receipt names.

    ``authorized`` is the freshest answer about the caller: of a replay, the one asked for it.
    """

    write_set: WriteSet | None
    receipt: IdempotencyReceipt
    loaded: Loaded
    authorized: Authorized


class AccessPath:
    """Leads calls through the checks. Holds no state but the commits that are still running."""

    def __init__(self, authority: AuthorityPort, bindings: BindingPort, entries: Entries) -> None:
        """Take the two ports, and what makes the entries that recall finds memories by."""
        self._authority = authority
        self._bindings = bindings
        self._entries = entries
        self._commits: set[asyncio.Task[CommitOutcome]] = set()

    async def authorize(self, call: Call, scope: ScopeInput, need: Need = KNOWLEDGE) -> Authorized:
        """Check ①. Fields other than scope and paging are judged after it."""
        return await self._authority.check(call, RunScope(scope.project_id, scope.run_id), need)

    async def enter(
        self,
        authorized: Authorized,
        capability: Capability | None,
        need: Need = KNOWLEDGE,
        *,
        create: bool = True,
    ) -> Access:
        """Judge the run selection, bind the run, and require a capability.

        Without ``create`` the run must be pinned already.

        A failure of the binding is a provider's outcome: it is told only after check ② has passed.
        """
        authorized.selected()
        try:
            bound = await self._bindings.bind(authorized, create=create)
            if capability is not None:
                bound.require(capability)
        except Exception:
            await self._authority.recheck(authorized, need)
            raise
        return Access(authorized, need, bound)

    async def authorize_project(self, call: Call, project_id: str, need: Need) -> Authorized:
        """Check ① for a call that names no run."""
        return await self._authority.check(call, ProjectScope(project_id), need)

    async def confirm(self, authorized: Authorized, need: Need) -> None:
        """Check ② for a call that reads nothing from a provider."""
        await self._authority.recheck(authorized, need)

    async def read(
        self, access: Access, read: Callable[[IMemoryProvider, float], Awaitable[T]]
    ) -> T:
        """Read from the provider, then check ②, then tell: one store trip, two owner trips."""
        try:
            result = await read(access.bound.provider, access.timeout())
        except Exception:
            await self._authority.recheck(access.authorized, access.need)
            raise
        await self._authority.recheck(access.authorized, access.need)
        return result

    async def write(self, access: Access, write: Write) -> Settled:
        """Load beside check ②, decide, commit; again after contention: two store, two owner trips.

        A blind write that nothing stands in the way of is one store trip.

        Raises:
            IdempotencyKeyReusedError, StaleRevisionError, TombstonedError: not retryable.
            ConcurrentWriteError: others won every attempt; retryable.
            What ``decide``, the provider and the authority raise.
        """
        met: dict[str, str | None] = {}
        buried: set[str] = set()
        blind = self._is_blind(access, write)
        for attempt in range(ATTEMPTS_MAX):
            is_blind = blind and attempt == 0
            await self._spread(access, attempt - blind)
            request = with_met(write.load, met)
            loaded, second = await self._load(access, None if is_blind else request)
            if loaded.receipt is not None:
                return await self._replay(access, write, loaded.receipt)
            if write.prepare is not None:
                loaded = await write.prepare(loaded)
            write_set, loaded = await self._decide(
                access, write, loaded, second, has_graph=request.graph
            )
            match await self._commit(access, write_set, is_blind=is_blind):
                case Committed():
                    return Settled(write_set, write_set.receipt, loaded, second)
                case Replayed(receipt):
                    return await self._replay(access, write, receipt)
                case StaleRevision(current=current) if not write.own_revisions:
                    raise StaleRevisionError(current)
                case AlreadyExists(record_id) if write.exists is not None:
                    raise write.exists(record_id)
                case Tombstoned(key) if key in buried:
                    raise TombstonedError("the content was forgotten and may not come back")
                case Tombstoned(key):
                    buried.add(key)
                    met[key] = None
                case ClaimTaken(key, record_id):
                    met[key] = record_id
                case _:
                    continue
        raise ConcurrentWriteError("other writers won every attempt; retry")

    async def rehearse(self, access: Access, write: Write) -> WriteSet:
        """Load beside check ②, decide, and commit nothing; an earlier request's receipt is nothing.

        Raises:
            What ``decide``, the provider and the authority raise.
        """
        loaded, second = await self._load(access, replace(write.load, receipt=None))
        write_set, _ = await self._decide(access, write, loaded, second, has_graph=write.load.graph)
        return write_set

    async def drain(self) -> None:
        """Wait for commits whose callers went away. Each is bounded by its own timeout."""
        if self._commits:
            await asyncio.wait(self._commits)

    def _is_blind(self, access: Access, write: Write) -> bool:
        """Tell whether to commit before anything is loaded.

        No text goes to a model that the store may refuse.
        """
        asks_a_model = access.keeps_vectors and self._entries.asks_a_model
        return write.blind and access.bound.provider.commits_unseen and not asks_a_model

    async def _spread(self, access: Access, attempt: int) -> None:
        """Part those who met, longer each time, so that they do not meet again (004-60)."""
        if attempt > 0:
            pause = random.uniform(0.0, PAUSE_S * 2**attempt)  # noqa: S311 - no secret
            await asyncio.sleep(min(pause, access.call.remaining()))

    async def _decide(
        self, access: Access, write: Write, loaded: Loaded, second: Authorized, *, has_graph: bool
    ) -> tuple[WriteSet, Loaded]:
        """Decide, load what is asked for, decide again; then say what recall finds heads by."""
        for _ in range(DECISIONS_MAX):
            decided = write.decide(loaded, second)
            if isinstance(decided, WriteSet):
                return await indexed(decided, loaded, self._index(access)), loaded
            more = await access.bound.provider.load(decided, timeout=access.timeout())
            loaded = joined(loaded, answered(decided, more), keeps_graph=has_graph)
            has_graph = has_graph or decided.graph
        raise StoredDataInvalidError("a key is held by a record that is not there")

    def _index(self, access: Access) -> Index:
        """Return what makes entries for the records of a call, in half of the time it has left."""

        async def index(told: tuple[Revision, ...]) -> tuple[RecallEntry, ...]:
            entries, _ = await self._entries.of(
                [(each.content, each.facet) for each in told],
                tenant_id=access.project.tenant_id,
                vectors=access.keeps_vectors,
                timeout=access.timeout() / 2,
            )
            return entries

        return index

    async def _load(self, access: Access, request: LoadRequest | None) -> tuple[Loaded, Authorized]:
        """Load beside check ②; without a request only check."""
        if request is None:
            return Loaded(), await self._authority.recheck(access.authorized, access.need)
        loaded, second = await asyncio.gather(
            access.bound.provider.load(request, timeout=access.timeout()),
            self._authority.recheck(access.authorized, access.need),
            return_exceptions=True,
        )
        if isinstance(second, BaseException):
            raise second
        if isinstance(loaded, BaseException):
            raise loaded
        return answered(request, loaded), second

    async def _replay(self, access: Access, write: Write, receipt: IdempotencyReceipt) -> Settled:
        """Load what the earlier request left, beside a check that begins now."""
        named = LoadRequest(
            project=access.project,
            record_ids=tuple(dict.fromkeys(ref.record_id for ref in receipt.refs)),
            revisions=tuple(dict.fromkeys(receipt.refs)),
        )
        loaded, third = await self._load(access, named)
        check_same_request(receipt, write.method, write.fingerprint)
        return Settled(None, receipt, loaded, third)

    async def _commit(
        self, access: Access, write_set: WriteSet, *, is_blind: bool
    ) -> CommitOutcome | None:
        """Commit out of reach of the caller's cancellation: what was sent runs to its end.

        ``None``: a blind commit failed and wrote nothing. What an earlier request left is to be
        told all the same, and a store that takes no writes may still be read.

        A caller who goes away meanwhile keeps its place until then, so that nobody can have more
        commits running than calls. The commit's own timeout bounds that.
        """
        timeout = access.timeout()
        access.call.commit_sent = True
        task = asyncio.ensure_future(access.bound.provider.commit(write_set, timeout=timeout))
        self._commits.add(task)
        task.add_done_callback(self._commit_done)
        try:
            outcome = await asyncio.shield(task)
        except asyncio.CancelledError:
            await asyncio.wait({task})
            raise
        except OutcomeUnknownError:
            raise
        except ProviderError:
            if not is_blind:
                raise
            outcome = None
        access.call.commit_sent = isinstance(outcome, Committed)
        return outcome

    def _commit_done(self, task: asyncio.Task[CommitOutcome]) -> None:
        self._commits.discard(task)
        if not task.cancelled():
            task.exception()  # marks it as seen: its caller may have gone away
