"""What laws of transfer do: export, make of an export what an import commits, look for graves."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from providers.conformance import expect, specimens
from providers.conformance.steps import AGENT, SECONDS
from providers.exports import Export, ExportRequest, KeyQuery, KeysFound
from providers.interface import IMemoryProvider
from providers.model import (
    ChangeKind,
    ProjectKey,
    Record,
    Revision,
    RevisionRef,
    State,
    Trust,
    WriteSet,
)
from providers.requests import LoadRequest

Chain = tuple[Record, tuple[Revision, ...]]

WIDE = {"records_max": 100, "revisions_max": 2_000, "bytes_max": 16 * 1024 * 1024}
"""Limits that no law of wholeness comes near."""


async def export(
    provider: IMemoryProvider, project: ProjectKey, *names: str, **changes: Any
) -> Export:
    """Export; ``names`` are record ids, ``changes`` fields of the request."""
    asked: dict[str, Any] = {"agent_id": AGENT, **WIDE, **changes}
    request = ExportRequest(project=project, record_ids=names, **asked)
    return await provider.export(request, timeout=SECONDS)


async def exported(
    provider: IMemoryProvider, project: ProjectKey, *names: str, **changes: Any
) -> tuple[Chain, ...]:
    """Export and expect it to be within its limits."""
    got = await export(provider, project, *names, **changes)
    expect.equal(got.exceeded, None, "the limit that was passed")
    return got.chains


def names_of(chains: Iterable[Chain]) -> list[str]:
    """Name the records of chains, in their order."""
    return [head.current.record_id for head, _ in chains]


def chain_of(*revisions: Record) -> Chain:
    """Make the chain of a record's heads, oldest first."""
    return revisions[-1], tuple(each.current for each in revisions)


def brought(project: ProjectKey, chains: Iterable[Chain], **changes: Any) -> WriteSet:
    """Make the write set that imports chains, as 004-88 has it; ``changes`` are its fields."""
    listed = tuple(chains)
    heads = [
        specimens.after(
            head,
            state=State.ACTIVE,
            trust=Trust.PENDING,
            superseded_by_record_id=None,
            source_run_id="run-import",
            source_session_id=None,
            change_kind=ChangeKind.IMPORTED,
        )
        for head, _ in listed
    ]
    history = tuple(each for _, revisions in listed for each in revisions)
    return specimens.create(project, *heads, history=history, **changes)


def as_imported(write_set: WriteSet) -> list[Chain]:
    """Return the chains that are there once an import was applied, in the order of an export."""
    chains: list[Chain] = []
    for put in write_set.heads:
        current = put.record.current
        past = [each for each in write_set.history if each.record_id == current.record_id]
        chains.append((put.record, (*past, current)))
    return sorted(chains, key=lambda each: (each[0].current.kind, each[0].current.record_id))


def renamed(chain: Chain, record_id: str) -> Chain:
    """Return the same chain as another record's, with revision ids of its own."""
    head, revisions = chain
    link = None
    made: list[Revision] = []
    for each in revisions:
        made.append(
            replace(
                each,
                record_id=record_id,
                revision_id=specimens.fresh("rev"),
                previous_revision_id=link,
            )
        )
        link = made[-1].revision_id
    return Record(made[-1], head.create_time), tuple(made)


async def nothing_came(provider: IMemoryProvider, write_set: WriteSet) -> None:
    """Expect that nothing at all of a refused import is stored, but what was there before it."""
    revisions = (*write_set.history, *(put.record.current for put in write_set.heads))
    request = LoadRequest(
        project=write_set.project,
        revisions=tuple(RevisionRef(each.record_id, each.revision) for each in revisions),
        receipt=write_set.receipt.key,
        keys=tuple(each.key for each in write_set.claims),
        transfer=True,
    )
    loaded = await provider.load(request, timeout=SECONDS)
    given = {each.revision_id: each for each in revisions}
    found = [each for each in loaded.revisions.values() if given.get(each.revision_id) == each]
    expect.equal(found, [], "the revisions of a refused import")
    state = (loaded.receipt, dict(loaded.keys), loaded.transfer)
    expect.equal(state, (None, {}, 0), "receipt, keys and counter after a refused import")


async def graves(provider: IMemoryProvider, project: ProjectKey, *keys: str) -> KeysFound:
    """Ask for the tombstones among keys."""
    return await provider.tombstones(KeyQuery(project=project, keys=keys), timeout=SECONDS)
