"""The model: a provider so simple that it is obviously right. Everything in one process's memory.

It exists to judge laws and other adapters, never to keep anything. No method waits in the middle,
so each one happens at once; that is all there is to its atomicity.
"""

import json
from collections.abc import Mapping
from copy import deepcopy

from providers import rules
from providers.capabilities import Capability
from providers.conformance.reference_candidates import ReferenceCandidates
from providers.conformance.reference_delivery import ReferenceDelivery
from providers.conformance.reference_export import ReferenceExport
from providers.conformance.reference_pages import brief, within
from providers.conformance.reference_recall import ReferenceRecall
from providers.conformance.reference_search import fits, page
from providers.conformance.reference_shelves import ReferenceStore, Shelf
from providers.errors import WriteSetInvalidError
from providers.model import HeadPut, Record, Revision, RevisionRef, State, WriteSet
from providers.requests import (
    AlreadyExists,
    ChainLink,
    ClaimTaken,
    CommitOutcome,
    Committed,
    Contended,
    GraphConflict,
    IdempotencyReused,
    KeyHolder,
    Loaded,
    LoadRequest,
    Negotiated,
    Replayed,
    RevisionsPage,
    RevisionsRequest,
    SearchPage,
    SearchRequest,
    StaleRevision,
    Tombstoned,
)

__all__ = ["ABSENT", "CAPABILITIES", "ReferenceMemoryProvider", "ReferenceStore", "Shelf"]

CHAIN_LINKS_MAX = 66
ABSENT: Mapping[Capability, str] = {}
CAPABILITIES = frozenset(Capability) - set(ABSENT)


class ReferenceMemoryProvider(
    ReferenceCandidates, ReferenceDelivery, ReferenceExport, ReferenceRecall
):
    """The contract over dictionaries. Neither durable nor freezable."""

    commits_unseen = True

    async def negotiate(self, *, timeout: float) -> Negotiated:
        """See ``IMemoryProvider.negotiate``."""
        self._check_open()
        self._check_marker()
        return Negotiated(
            resource=self._resource,
            adapter_version="1.0.0",
            options_schema_version=1,
            options_revision="reference",
            capabilities=CAPABILITIES,
            absent=ABSENT,
            recall_records_max=self.recall_records_max,
        )

    async def ready(self, *, timeout: float) -> None:
        """See ``IMemoryProvider.ready``."""
        self._check_open()
        self._check_marker()

    async def close(self) -> None:
        """See ``IMemoryProvider.close``."""
        self._closed = True

    async def load(self, request: LoadRequest, *, timeout: float) -> Loaded:
        """See ``IMemoryProvider.load``."""
        shelf = self._opened(request.project)
        heads = {each: self._head(shelf, each) for each in request.record_ids}
        keys = {each: self._holder(shelf, each) for each in request.keys}
        return deepcopy(
            Loaded(
                heads={name: record for name, record in heads.items() if record},
                revisions={
                    ref: shelf.revisions[ref] for ref in request.revisions if ref in shelf.revisions
                },
                receipt=shelf.receipts.get(request.receipt) if request.receipt else None,
                keys={key: holder for key, holder in keys.items() if holder},
                chain=self._chain(shelf, request.chain_from),
                graph=shelf.graph if request.graph else 0,
                transfer=shelf.transfer if request.transfer else 0,
                stream=shelf.streams.get(request.stream_run_id or "", 0),
            )
        )

    async def commit(self, write_set: WriteSet, *, timeout: float) -> CommitOutcome:
        """See ``IMemoryProvider.commit``."""
        self._check_open()
        self._check_rules(write_set)
        self._check_marker()
        shelf = self._shelf(write_set.project)
        refusal = self._refusal(shelf, write_set)
        if refusal is not None:
            return deepcopy(refusal)
        self._apply(shelf, deepcopy(write_set))
        return Committed()

    async def revisions(self, request: RevisionsRequest, *, timeout: float) -> RevisionsPage:
        """See ``IMemoryProvider.revisions``."""
        shelf = self._opened(request.project)
        head = self._head(shelf, request.record_id)
        if head is None or not _readable(head.current, request.agent_id):
            return RevisionsPage(found=False)
        newest = head.current.revision
        top = newest if request.before is None else min(newest, request.before - 1)
        bottom = max(top - request.limit, 0)
        whole = [
            shelf.revisions[RevisionRef(request.record_id, number)]
            for number in range(top, bottom, -1)
        ]
        held = within(whole, request.bytes_max)
        page = tuple(map(brief, whole[:held]) if request.brief else whole[:held])
        return deepcopy(RevisionsPage(found=True, revisions=page, more=top > held))

    async def search(self, request: SearchRequest, *, timeout: float) -> SearchPage:
        """See ``IMemoryProvider.search``."""
        shelf = self._opened(request.project)
        heads = (self._head(shelf, each) for each in shelf.heads)
        fitting = [each for each in heads if each and self._fits(each, request)]
        return deepcopy(self._page(fitting, request))

    # -------------------- reading

    def _fits(self, record: Record, request: SearchRequest) -> bool:
        return fits(record, request)

    def _page(self, fitting: list[Record], request: SearchRequest) -> SearchPage:
        return page(fitting, request)

    def _check_rules(self, write_set: WriteSet) -> None:
        rules.check(write_set)
        rules.check_text(write_set)
        outcome = json.dumps(dict(write_set.receipt.outcome), ensure_ascii=False)
        if len(outcome.encode()) > rules.OUTCOME_BYTES_MAX:
            raise WriteSetInvalidError("the receipt's outcome is too large")

    def _holder(self, shelf: Shelf, key: str) -> KeyHolder | None:
        if key in shelf.tombstones:
            return KeyHolder(record_id=None, tombstone_kind=shelf.tombstones[key].kind)
        if key in shelf.claims:
            return KeyHolder(record_id=shelf.claims[key], tombstone_kind=None)
        return None

    def _chain(self, shelf: Shelf, start: str | None) -> tuple[ChainLink, ...]:
        links: list[ChainLink] = []
        seen: set[str] = set()
        at = start
        while at is not None and len(links) < CHAIN_LINKS_MAX:
            record = self._head(shelf, at)
            if record is None:
                break
            now = record.current
            links.append(
                ChainLink(at, now.agent_id, now.kind, now.state, now.superseded_by_record_id)
            )
            if at in seen:
                break
            seen.add(at)
            at = now.superseded_by_record_id
        return tuple(links)

    # -------------------- refusing, in the order of clause C-3

    def _refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        return (
            self._receipt_refusal(shelf, write_set)
            or self._tombstone_refusal(shelf, write_set)
            or self._taken_refusal(shelf, write_set)
            or self._counter_refusal(shelf, write_set)
            or self._stale_refusal(shelf, write_set)
        )

    def _receipt_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        kept = shelf.receipts.get(write_set.receipt.key)
        if kept is None:
            return None
        same = (kept.method, kept.fingerprint) == (
            write_set.receipt.method,
            write_set.receipt.fingerprint,
        )
        return Replayed(kept) if same else IdempotencyReused()

    def _tombstone_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        keys = (*write_set.must_be_absent, *(claim.key for claim in write_set.claims))
        return next((Tombstoned(key) for key in keys if key in shelf.tombstones), None)

    def _taken_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        for put in write_set.heads:
            record_id = put.record.current.record_id
            if put.expected_revision is None and record_id in shelf.heads:
                return AlreadyExists(record_id)
        used = {each.revision_id for each in shelf.revisions.values()}
        for revision in (*write_set.history, *(put.record.current for put in write_set.heads)):
            if revision.revision_id in used:
                return AlreadyExists(revision.record_id)
        if write_set.effect is not None and write_set.effect.receipt_id in shelf.effects:
            return AlreadyExists(write_set.effect.receipt_id)
        for claim in write_set.claims:
            if shelf.claims.get(claim.key) != claim.held_by:
                return ClaimTaken(claim.key, shelf.claims.get(claim.key))
        return None

    def _counter_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        if write_set.graph_expected not in (None, shelf.graph):
            return GraphConflict()
        if write_set.transfer_expected not in (None, shelf.transfer):
            return GraphConflict()
        effect = write_set.effect
        if effect is not None and shelf.streams.get(effect.run_id, 0) != effect.sequence - 1:
            return Contended()
        return None

    def _stale_refusal(self, shelf: Shelf, write_set: WriteSet) -> CommitOutcome | None:
        for put in write_set.heads:
            record_id = put.record.current.record_id
            head = self._head(shelf, record_id)
            current = 0 if head is None else head.current.revision
            if current != (put.expected_revision or 0) or not self._links(head, put, write_set):
                return StaleRevision(record_id, current)
        return None

    def _links(self, head: Record | None, put: HeadPut, write_set: WriteSet) -> bool:
        """Tell whether the first new revision names the head that it follows."""
        current = put.record.current
        new = [each for each in write_set.history if each.record_id == current.record_id]
        first = min([*new, current], key=lambda each: each.revision)
        wanted = None if head is None else head.current.revision_id
        return first.previous_revision_id == wanted

    # -------------------- applying

    def _apply(self, shelf: Shelf, write_set: WriteSet) -> None:
        self._put_heads(shelf, write_set)
        self._move_keys(shelf, write_set)
        self._advance(shelf, write_set)
        shelf.receipts[write_set.receipt.key] = write_set.receipt

    def _put_heads(self, shelf: Shelf, write_set: WriteSet) -> None:
        for revision in write_set.history:
            shelf.revisions[RevisionRef(revision.record_id, revision.revision)] = revision
        for put in write_set.heads:
            current = put.record.current
            shelf.revisions[RevisionRef(current.record_id, current.revision)] = current
            shelf.heads[current.record_id] = put.record
        self._put_entries(shelf, write_set)

    def _put_entries(self, shelf: Shelf, write_set: WriteSet) -> None:
        for put in write_set.heads:
            if put.entry is not None:
                shelf.entries[put.record.current.record_id] = put.entry

    def _move_keys(self, shelf: Shelf, write_set: WriteSet) -> None:
        for claim in write_set.claims:
            shelf.claims[claim.key] = claim.record_id
        for release in write_set.releases:
            if shelf.claims.get(release.key) == release.record_id:
                del shelf.claims[release.key]
        for tombstone in write_set.tombstones:
            shelf.claims.pop(tombstone.key, None)
            shelf.tombstones[tombstone.key] = tombstone

    def _advance(self, shelf: Shelf, write_set: WriteSet) -> None:
        if write_set.graph_expected is not None:
            shelf.graph += 1
        if write_set.transfer_expected is not None or write_set.tombstones:
            shelf.transfer += 1
        if write_set.effect is not None:
            shelf.streams[write_set.effect.run_id] = write_set.effect.sequence
            shelf.effects[write_set.effect.receipt_id] = write_set.effect


def _readable(current: Revision, agent_id: str) -> bool:
    return current.agent_id == agent_id and current.state is not State.FORGOTTEN
