"""Recall: each call is one statement, and so one round trip and one snapshot."""

import re
from collections.abc import Iterable

import asyncpg

from providers.capabilities import Capability
from providers.eligibility import SENSITIVITIES, TIERS
from providers.errors import CapabilityMissingError, StoredDataInvalidError
from providers.folding import folded
from providers.model import ResourceIdentity
from providers.postgres.connections import Connection, Connections
from providers.postgres.entries import entry_columns, to_numbers
from providers.postgres.reader import all_findable, findable
from providers.postgres.rows import SNAPSHOT_WIDTH, to_json, to_record
from providers.postgres.sending import marked, send
from providers.postgres.statements import (
    INDEX,
    RECALL,
    RECALL_NEAREST,
    TAGGED,
    UNINDEXED,
    UNINDEXED_MODEL,
)
from providers.recall import (
    DRIVEN_MAX,
    MATCHES_MAX,
    Eligible,
    IndexRequest,
    Matches,
    Near,
    Recalled,
    RecallRequest,
    Superseded,
    TaggedRequest,
    Unindexed,
    UnindexedRequest,
)
from providers.requests import SearchPage
from providers.rules import check_entry, is_storable

_WILDCARD = re.compile(r"[\\%_]")
_TAGGED_HEAD = 4
_UNINDEXED_HEAD = 3


async def recall(link: Connection, resource: ResourceIdentity, request: RecallRequest) -> Recalled:
    """See ``IMemoryProvider.recall``."""
    given = (
        *_filters(request.eligible),
        all_findable(request.terms),
        DRIVEN_MAX,
        MATCHES_MAX,
    )
    vector = request.vector
    if vector is None:
        row = await link.fetchrow(RECALL, *given)
    else:
        numbers, model = to_numbers(vector.packed), findable(vector.model)
        nearest = (numbers, model, vector.dimension, request.nearest_max)
        try:
            row = await link.fetchrow(RECALL_NEAREST, *given, *nearest)
        except asyncpg.UndefinedFunctionError as error:
            raise CapabilityMissingError(Capability.VECTORS) from error
    return _recalled(marked(resource, row))


async def tagged(
    link: Connection, resource: ResourceIdentity, request: TaggedRequest
) -> SearchPage:
    """See ``IMemoryProvider.tagged``."""
    rows = await link.fetch(TAGGED, *_filters(request.eligible), request.limit + 1)
    marked(resource, rows[0] if rows else None)
    found = [row for row in rows if row[_TAGGED_HEAD] is not None]
    records = tuple(
        to_record(row[_TAGGED_HEAD : _TAGGED_HEAD + SNAPSHOT_WIDTH], row["record_create_time"])
        for row in found
    )
    return SearchPage(records, more=rows[0]["more"])


async def unindexed(
    link: Connection, resource: ResourceIdentity, request: UnindexedRequest
) -> Unindexed:
    """See ``IMemoryProvider.unindexed``."""
    project, after, model = request.project, request.after or "", request.vector_model
    given = (
        findable(project.tenant_id) if is_storable(after) else None,
        findable(project.project_id),
        findable(after),
        request.limit,
    )
    if model is None:
        rows = await link.fetch(UNINDEXED, *given)
    else:
        # No model has the empty name: what cannot be stored is the model of none.
        rows = await link.fetch(UNINDEXED_MODEL, *given, findable(model) or "")
    marked(resource, rows[0] if rows else None)
    return Unindexed(
        tuple(
            to_record(
                row[_UNINDEXED_HEAD : _UNINDEXED_HEAD + SNAPSHOT_WIDTH], row["record_create_time"]
            )
            for row in rows
            if row[_UNINDEXED_HEAD] is not None
        )
    )


# -------------------- what is asked for


def _filters(eligible: Eligible) -> tuple[object, ...]:
    """Return the arguments that say what is eligible; see ``recall.sql``."""
    return (
        findable(eligible.project.tenant_id),
        findable(eligible.project.project_id),
        findable(eligible.agent_id),
        eligible.superseded is not Superseded.NONE,
        eligible.at,
        eligible.superseded is Superseded.ALL,
        _any_of(eligible.namespaces),
        _any_of(eligible.memory_kinds),
        eligible.subject if _is_findable(eligible) else None,
        eligible.epoch if _is_findable(eligible) else None,
        eligible.importance_min,
        _up_to(eligible),
        _from(eligible),
        [folded(tag) for tag in eligible.tags] if _is_findable(eligible) else [],
        _patterns(eligible),
    )


def _any_of(values: Iterable[str]) -> list[str] | None:
    listed = [str(value) for value in values]
    return [value for value in listed if is_storable(value)] if listed else None


def _up_to(eligible: Eligible) -> list[str]:
    return [str(each) for each in SENSITIVITIES[: SENSITIVITIES.index(eligible.ceiling) + 1]]


def _from(eligible: Eligible) -> list[str]:
    return [str(each) for each in TIERS[TIERS.index(eligible.lowest_tier) :]]


def _is_findable(eligible: Eligible) -> bool:
    """Tell whether what every memory must have can be stored at all."""
    must = (eligible.subject or "", eligible.epoch or "", *eligible.tags)
    return all(map(is_storable, must))


def _patterns(eligible: Eligible) -> list[str] | None:
    """Return the patterns of which one must fit; of none of them nothing fits."""
    if not _is_findable(eligible):
        return []
    if not eligible.patterns:
        return None
    return [_like(folded(each)) for each in eligible.patterns if is_storable(each)]


def _like(pattern: str) -> str:
    """Return a pattern in the server's own words."""
    literal = _WILDCARD.sub(r"\\\g<0>", pattern)
    return literal.replace("*", "%").replace("?", "_")


# -------------------- what was found


def _recalled(row: asyncpg.Record) -> Recalled:
    counts = tuple(zip(*(row["counts"] or ()), strict=True))
    if any(None in column for column in counts):
        raise StoredDataInvalidError("a stored entry has a term without its count")
    near = zip(row["near_ids"] or (), row["likenesses"] or (), strict=True)
    return Recalled(
        documents=row["documents"],
        length_total=row["length_total"],
        frequencies=tuple(row["frequencies"] or ()),
        unindexed=row["unindexed"],
        matches=Matches(tuple(row["record_ids"] or ()), counts, tuple(row["lengths"] or ())),
        nearest=tuple(Near(name, max(-1.0, min(1.0, likeness))) for name, likeness in near),
    )


# -------------------- entries that are built later


async def index(
    connections: Connections, resource: ResourceIdentity, request: IndexRequest, timeout: float
) -> int:
    """See ``IMemoryProvider.index``."""
    connections.check_open()
    given = _entries(resource, request)
    row = await send(connections, resource, INDEX, *given, timeout=timeout)
    return int(row["put"])


def _entries(resource: ResourceIdentity, request: IndexRequest) -> tuple[object, ...]:
    numbers: list[float] = []
    rows: list[dict[str, object]] = []
    for put in request.entries:
        check_entry(put.entry)
        if is_storable(put.record_id) and is_storable(put.revision_id):
            names = {"record_id": put.record_id, "revision_id": put.revision_id}
            rows.append(names | entry_columns(put.entry, numbers))
    return (
        findable(request.project.tenant_id),
        findable(request.project.project_id),
        resource.resource_id,
        resource.generation,
        to_json(rows),
        [row["record_id"] for row in rows],
        numbers,
    )
