"""The use cases that take memories in."""

from dataclasses import dataclass, field, replace
from typing import Final

from broker.domain.authority import Authorized
from broker.domain.call import Call
from broker.domain.errors import TombstonedError
from broker.domain.facets import claims_operator, require_operator
from broker.domain.fields import check_scope
from broker.domain.idempotency import fingerprint, receipt_for
from broker.domain.memories import Arm, ArmReport, DedupMode, Gap, Remember, RememberedAll
from broker.domain.records import Stamp
from broker.memory.decide import DUPLICATE_COSINE
from broker.memory.holding import Standing, standing
from broker.memory.intake import Intake, Item, Likeness, Rules, remembered
from broker.memory.shelf import Shelf
from broker.retrieval.terms import distinct_terms
from broker.services import likeness
from broker.services.access import Access, AccessPath, Settled, Write
from broker.services.entries import Entries
from broker.services.head_writer import HeadWriter, heads_left
from broker.services.memory_fields import Checked, checked_memories, path_of, request_fields
from broker.services.turns import with_room
from providers.capabilities import Capability
from providers.model import ReceiptKey, Record, WriteSet
from providers.requests import Loaded, LoadRequest

REMEMBER: Final = "Remember"
BATCH_REMEMBER: Final = "BatchRemember"
REINFORCING_ATTEMPTS: Final = 3
"""After so many lost attempts a telling is no longer counted: it is not worth a refusal."""

_VECTORS: Final = "v"
"""Under which name a receipt keeps why there are no vectors."""


class Memories:
    """Takes memories in behind the checks of ``AccessPath``."""

    def __init__(self, access: AccessPath, writer: HeadWriter, entries: Entries) -> None:
        """Take the path of checks, what stamps writes, and what makes entries."""
        self._access = access
        self._writer = writer
        self._entries = entries

    async def remember(self, call: Call, request: Remember) -> RememberedAll:
        """Take memories in, all of them or none (001-01, R15).

        Raises:
            ContentRefusedError, TombstonedError, SourceNotAllowedError: not retryable.
            ConcurrentWriteError: others won every attempt; retryable.
        """
        check_scope(request.scope)
        authorized = await self._access.authorize(call, request.scope)
        checked = checked_memories(request)
        operator = any(claims_operator(each.facet) for each in request.memories)
        if operator:
            require_operator(authorized)
        access = await self._access.enter(authorized, Capability.WRITE)
        access.bound.require(Capability.RECALL)
        intent = _Intent(access, request, checked, self._entries, self._writer, operator)
        settled = await self._access.write(access, intent.write())
        return _reply(request, settled, intent.heads)


@dataclass(slots=True)
class _Intent:
    """One request on its way through the attempts of its write."""

    access: Access
    request: Remember
    checked: tuple[Checked, ...]
    entries: Entries
    writer: HeadWriter
    operator: bool
    attempts: int = 0
    gap: Gap | None = None
    items: tuple[Item, ...] = ()
    heads: dict[str, Record] = field(default_factory=dict)
    like: list[tuple[Likeness, ...]] = field(default_factory=list)
    stamp: Stamp | None = None

    def write(self) -> Write:
        """Return the write, with the keys of every memory to load."""
        request = self.request
        method = BATCH_REMEMBER if request.batch else REMEMBER
        key = ReceiptKey(self.access.call.caller.actor_fingerprint, request.idempotency_key)
        request_print = fingerprint(method, request.scope, request_fields(request, self.checked))

        def decide(loaded: Loaded, second: Authorized) -> WriteSet:
            if self.operator:
                require_operator(second)
            return self._decided(loaded, method, key, request_print)

        return Write(
            method=method,
            key=key,
            fingerprint=request_print,
            load=LoadRequest(
                project=self.access.project, receipt=key, keys=self._keys(), graph=True
            ),
            prepare=self._prepare,
            decide=decide,
            own_revisions=True,
        )

    def _keys(self) -> tuple[str, ...]:
        scope = self.request.scope
        keys: dict[str, None] = {}
        for each in self.checked:
            keys |= dict.fromkeys(each.keys(scope.agent_id))
        return tuple(keys)

    async def _prepare(self, loaded: Loaded) -> Loaded:
        """Make the items once, and read what stands against them, afresh in every attempt."""
        self.attempts += 1
        self.stamp = self.writer.stamp(self.access.call)
        if not self.items:
            self.items, self.gap = await self._made(self.stamp)
        self.heads = dict(await likeness.holders(self.access, loaded.keys))
        self.like = [()] * len(self.items)
        if self.request.dedup.mode is not DedupMode.DECLARED and not self._is_there(loaded):
            await self._compare(self.stamp)
        return replace(loaded, heads={**loaded.heads, **self.heads})

    def _is_there(self, loaded: Loaded) -> bool:
        """Tell whether the only memory is live already, word for word: no other counts then.

        One of several may find it gone, since those before it may take its place.
        """
        if len(self.items) > 1 or self.stamp is None:
            return False
        key = self.items[0].content_key
        holder = self.heads.get(loaded.keys[key].record_id or "")
        return holder is not None and standing(holder, key, self.stamp.now) is Standing.LIVE

    async def _made(self, stamp: Stamp) -> tuple[tuple[Item, ...], Gap | None]:
        facets = [each.facet_at(stamp.now) for each in self.checked]
        contents = [each.content for each in self.checked]
        entries, gap = await self.entries.of(
            list(zip(contents, facets, strict=True)),
            tenant_id=self.access.project.tenant_id,
            vectors=self.access.keeps_vectors,
            timeout=self.access.timeout() / 2,
        )
        texts = [each.content for each in contents]
        terms = await with_room(
            lambda: [distinct_terms(each) for each in texts], sum(map(len, texts))
        )
        scope = self.request.scope
        items = tuple(
            Item(
                agent_id=scope.agent_id,
                run_id=scope.run_id,
                content=content,
                facet=facet,
                terms=each,
                content_key=checked.keys(scope.agent_id)[0],
                entry=entry,
            )
            for checked, content, facet, each, entry in zip(
                self.checked, contents, facets, terms, entries, strict=True
            )
        )
        return items, gap

    async def _compare(self, stamp: Stamp) -> None:
        found = [await likeness.like(self.access, item, at=stamp.now) for item in self.items]
        ids = [record_id for each in found for record_id, _ in each]
        missing = [each for each in ids if each not in self.heads]
        self.heads |= await likeness.heads(self.access, missing)
        self.like = await likeness.compared(self.items, found, self.heads)

    def _decided(
        self, loaded: Loaded, method: str, key: ReceiptKey, request_print: str
    ) -> WriteSet:
        stamp = self.stamp or self.writer.stamp(self.access.call)
        shelf = Shelf(self.heads, loaded.keys, at=stamp.now)
        threshold = self.request.dedup.duplicate_threshold
        intake = Intake(
            shelf=shelf,
            keys=loaded.keys,
            rules=Rules(
                declared=self.request.dedup.mode is DedupMode.DECLARED,
                duplicate_cosine=DUPLICATE_COSINE if threshold is None else threshold,
                reinforces=self.attempts <= REINFORCING_ATTEMPTS,
            ),
            stamp=stamp,
            likeness=likeness.compared_earlier,
        )
        for place, (item, like) in enumerate(zip(self.items, self.like, strict=True)):
            try:
                intake.take(item, like)
            except TombstonedError as error:
                error.metadata["field"] = f"{path_of(self.request, place)}.content"
                raise
        outcome = dict(intake.outcome())
        if self.gap is not None:
            outcome[_VECTORS] = self.gap.value
        receipt = receipt_for(
            key=key,
            method=method,
            fingerprint=request_print,
            refs=intake.refs(),
            create_time=stamp.now,
            outcome=outcome,
        )
        return WriteSet(
            project=self.access.project,
            receipt=receipt,
            heads=shelf.heads,
            history=shelf.history,
            claims=shelf.claims,
            releases=shelf.releases,
            must_be_absent=shelf.absences,
            graph_expected=loaded.graph if shelf.takes_over else None,
        )


def _reply(request: Remember, settled: Settled, heads: dict[str, Record]) -> RememberedAll:
    """Build the reply from the receipt, so that a replay says the same."""
    receipt = settled.receipt
    gap = receipt.outcome.get(_VECTORS)
    return RememberedAll(
        project_id=request.scope.project_id,
        remembered=remembered(
            receipt.refs, heads_named(settled, heads), receipt.outcome, len(request.memories)
        ),
        vectors=ArmReport(Arm.VECTOR, ran=gap is None, gap=None if gap is None else Gap(str(gap))),
        replayed=settled.write_set is None,
    )


def heads_named(settled: Settled, heads: dict[str, Record]) -> tuple[Record, ...]:
    """Return the heads a receipt names, in its order: those written, and those that were there."""
    if settled.write_set is None:
        return heads_left(settled)
    written = {put.record.current.record_id: put.record for put in settled.write_set.heads}
    return tuple(written.get(ref.record_id) or heads[ref.record_id] for ref in settled.receipt.refs)
