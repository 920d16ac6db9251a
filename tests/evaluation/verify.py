"""Reads every record back, with its whole history, and compares it with the model."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence

from broker.api.v1 import record_pb2 as records
from tests.evaluation.calls import Member, RefusedError
from tests.evaluation.model import Known, Model
from tests.evaluation.plan import get_of, list_of, revision_of

PAGE_SIZES = (1, 2, 0)
PAGE_SIZE_DEFAULT = 50
STRANGER_EVERY = 10


async def verify(model: Model, members: Sequence[Member], rivals: Mapping[str, str]) -> None:
    """Check all records; members take turns to read.

    Args:
        model: What must be there.
        members: Those who may read.
        rivals: For each agent one whose records it may not be asked for.
    """
    async with asyncio.TaskGroup() as group:
        for at, known in enumerate(model.known.values()):
            member = members[at % len(members)]
            group.create_task(_record(model, member, known, at))
            if at % STRANGER_EVERY == 0:
                group.create_task(_strangers(model, member, known, rivals[known.agent_id]))


async def _record(model: Model, member: Member, known: Known, at: int) -> None:
    where = known.record_id
    head = await member.get(get_of(known))
    model.same(head.record, known.record(), where)
    model.expect(head.record.content.encode() == known.head.content.encode(), f"{where}: bytes")
    for revision in known.revisions:
        read = await member.revision(revision_of(known, revision.revision))
        model.same(read.revision, revision, f"{where}, revision {revision.revision}")
    # A history of one revision is the same page for every size.
    sizes = PAGE_SIZES if len(known.revisions) > 1 else PAGE_SIZES[at % len(PAGE_SIZES) :][:1]
    for size in sizes:
        await _history(model, member, known, size)
    model.checked += 1


async def _history(model: Model, member: Member, known: Known, size: int) -> None:
    where = f"{known.record_id}, pages of {size or 'the default size'}"
    found: list[records.Revision] = []
    token = ""
    while True:
        page = await member.revisions(list_of(known, size, token))
        token = page.next_page_token
        held = len(page.revisions)
        model.expect(0 < held <= (size or PAGE_SIZE_DEFAULT), f"{where}: a page holds {held}")
        found += page.revisions
        left = len(known.revisions) - len(found)
        model.expect(bool(token) == (left > 0), f"{where}: token {token!r} where {left} are left")
        if not token or left <= 0:
            break
    model.expect(len(found) == len(known.revisions), f"{where}: {len(found)} revisions")
    for told, wanted in zip(found, reversed(known.revisions), strict=False):
        model.same(told, wanted, f"{where}, revision {wanted.revision}")


async def _strangers(model: Model, member: Member, known: Known, rival: str) -> None:
    """Ask for what is not there: the record for another agent, and a revision too many."""
    elsewhere = Known(known.project_id, known.run_id, [records.Revision()])
    elsewhere.revisions[0].CopyFrom(known.revisions[0])
    elsewhere.revisions[0].agent_id = rival
    refusals: dict[str, list[Awaitable[object]]] = {
        "RECORD_NOT_FOUND": [
            member.get(get_of(elsewhere)),
            member.revisions(list_of(elsewhere, 0)),
            member.revision(revision_of(elsewhere, 1)),
        ],
        "REVISION_NOT_FOUND": [member.revision(revision_of(known, len(known.revisions) + 1))],
    }
    for reason, asked in refusals.items():
        for outcome in await asyncio.gather(*asked, return_exceptions=True):
            told = outcome.reason if isinstance(outcome, RefusedError) else repr(outcome)[:200]
            model.expect(told == reason, f"{known.record_id}: {told} where {reason} is due")
