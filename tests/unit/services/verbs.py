"""Every method that writes content or state, by its name, over a scripted world."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from itertools import count
from typing import Any

from broker.domain.idempotency import receipt_for
from broker.domain.proposals import CreateProposal, PromoteProposal
from broker.domain.requests import (
    ChangeRecord,
    ContentInput,
    FacetInput,
    RejectKind,
    RejectRecord,
    RestoreRecord,
    SupersedeDecision,
)
from broker.server.bundles import MessageBundle
from broker.transfer.given import ImportRecords
from providers.conformance.reference import Shelf
from providers.conformance.specimens import ACTOR
from providers.model import (
    Kind,
    ProjectKey,
    ReceiptKey,
    Record,
    Revision,
    RevisionRef,
    Tombstone,
    WriteSet,
)
from tests.fixtures import bundles
from tests.unit.services.world import CONTENT, SCOPE, World

PROJECT = ProjectKey("tenant", "project")


class Verbs:
    """Writes as a caller who may do everything. Each write has a key of its own."""

    def __init__(self, world: World | None = None) -> None:
        """Take a world, or make one."""
        self.world = world or World(may_write=True)
        self._keys = count(1)

    async def create(
        self, text: str, kind: Kind = Kind.MEMORY, facet: FacetInput | None = None, **changes: Any
    ) -> Record:
        """Create a memory or session context."""
        made = await self.world.create(
            self._key(), content=said(text, **changes), kind=kind, facet=facet
        )
        return made.record

    async def update(self, record: Record, text: str, **changes: Any) -> Record:
        """Replace the text of a record."""
        made = await self.world.update(
            record.current.record_id,
            self._key(),
            expected_revision=record.current.revision,
            **{"content": said(text)} | changes,
        )
        return made.record

    async def restore(self, record: Record, revision: int) -> Record:
        """Bring a revision back."""
        request = RestoreRecord(**self._change(record), source_revision=revision)
        return (await self.world.changes.restore(self.world.call(), request)).record

    async def archive(self, record: Record, **changes: Any) -> Record:
        """Put a record aside."""
        return await self._changed(self.world.changes.archive, record, **changes)

    async def unarchive(self, record: Record) -> Record:
        """Take a record back."""
        return await self._changed(self.world.changes.unarchive, record)

    async def approve(self, record: Record) -> Record:
        """Confirm a record."""
        return await self._changed(self.world.changes.approve, record)

    async def reopen(self, record: Record) -> Record:
        """Take a judgement back."""
        return await self._changed(self.world.changes.reopen, record)

    async def reject(self, record: Record, kind: RejectKind | None = RejectKind.UNTRUE) -> Record:
        """Refuse a record."""
        request = RejectRecord(**self._change(record), reject_kind=kind)
        return (await self.world.changes.reject(self.world.call(), request)).record

    async def supersede(self, record: Record, by: Record) -> Record:
        """Replace a decision."""
        request = SupersedeDecision(
            **self._change(record), replacement_record_id=by.current.record_id
        )
        return (await self.world.changes.supersede(self.world.call(), request)).record

    async def propose(self, text: str, **changes: Any) -> Record:
        """Create a proposal."""
        request = CreateProposal(
            scope=SCOPE, idempotency_key=self._key(), content=said(text, title="Title", **changes)
        )
        return (await self.world.proposals.create(self.world.call(), request)).record

    async def promote(self, proposal: Record) -> Record:
        """Make a decision of a proposal."""
        request = PromoteProposal(
            scope=SCOPE,
            idempotency_key=self._key(),
            proposal_id=proposal.current.record_id,
            expected_revision=proposal.current.revision,
        )
        return (await self.world.proposals.promote(self.world.call(), request)).decision

    async def decide(self, text: str) -> Record:
        """Propose and promote."""
        return await self.promote(await self.propose(text))

    async def bring(self, *texts: str, validate_only: bool = False, **changes: Any) -> Record:
        """Import a memory that said one text after the other; ``changes`` are of the last."""
        revisions = [
            bundles.revision(
                "imported",
                number,
                **{"agent_id": "agent", "content": text}
                | (changes if number == len(texts) else {}),
            )
            for number, text in enumerate(texts, start=1)
        ]
        made = bundles.bundle("project", bundles.chain("project", revisions), agent="agent")
        request = ImportRecords(
            scope=SCOPE,
            idempotency_key=self._key(),
            bundle=MessageBundle(made, present=True),
            validate_only=validate_only,
        )
        (record,) = (await self.world.transfers.import_(self.world.call(), request)).records
        return record

    def history(self, record: Record) -> list[Revision]:
        """Return all revisions of a record, oldest first."""
        revisions = self.shelf().revisions.items()
        own = [each for ref, each in revisions if ref.record_id == record.current.record_id]
        return sorted(own, key=lambda each: each.revision)

    def rewrite(self, record: Record, text: str) -> Record:
        """Let a record say something that was written when nobody looked at it."""
        shelf, record_id = self.shelf(), record.current.record_id
        for ref, revision in shelf.revisions.items():
            if ref.record_id == record_id:
                content = replace(revision.content, content=text)
                shelf.revisions[ref] = replace(revision, content=content)
        newest = shelf.revisions[RevisionRef(record_id, record.current.revision)]
        shelf.heads[record_id] = replace(shelf.heads[record_id], current=newest)
        return self.head(record)

    async def bury(self, key: str) -> None:
        """Put a tombstone on a key, as forgetting does."""
        receipt = receipt_for(
            key=ReceiptKey(ACTOR, self._key()),
            method="Forget",
            fingerprint=ACTOR,
            refs=(),
            create_time=self.world.now(),
        )
        tombstone = Tombstone(key, "forgotten", self.world.now())
        buried = WriteSet(project=PROJECT, receipt=receipt, tombstones=(tombstone,))
        await self.world.model.commit(buried, timeout=1.0)

    def shelf(self) -> Shelf:
        """Return what is kept of the project."""
        return self.world.store.shelves.setdefault(PROJECT, Shelf())

    def head(self, record: Record) -> Record:
        """Return a record as it stands."""
        return self.shelf().heads[record.current.record_id]

    def holder(self, key: str) -> str | None:
        """Return the record that holds a key."""
        return self.shelf().claims.get(key)

    async def _changed(
        self, change: Callable[..., Awaitable[Any]], record: Record, **changes: Any
    ) -> Record:
        request = ChangeRecord(**self._change(record) | changes)
        written = await change(self.world.call(), request)
        head: Record = written.record
        return head

    def _change(self, record: Record) -> dict[str, Any]:
        return {
            "scope": SCOPE,
            "idempotency_key": self._key(),
            "record_id": record.current.record_id,
            "expected_revision": record.current.revision,
            "reason": "",
        }

    def _key(self) -> str:
        return f"verb-{next(self._keys)}"


def name(record: Record) -> str:
    """Return a record's id."""
    return record.current.record_id


def said(text: str, **changes: Any) -> ContentInput:
    """Say something."""
    return replace(CONTENT, content=text, **changes)
