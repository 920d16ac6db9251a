"""Writes: one statement on success, and one more that says what stood in the way."""

from dataclasses import dataclass
from functools import partial
from typing import Any

import asyncpg
import orjson

from providers.counters import expected_counters
from providers.documents import revision_columns
from providers.errors import WriteSetInvalidError
from providers.folding import search_text
from providers.marker import check_marker
from providers.model import Kind, ResourceIdentity, Revision, WriteSet
from providers.postgres import errors
from providers.postgres.connections import Connection, Connections
from providers.postgres.entries import entry_columns, filter_columns
from providers.postgres.rows import (
    effect_columns,
    to_counters,
    to_holders,
    to_json,
    to_receipt,
)
from providers.postgres.statements import CLASSIFY, COMMIT, COMMIT_CHANGED, COMMIT_NEW
from providers.refusal import Facts, expected_revision_id, judge
from providers.requests import CommitOutcome, Committed, Contended
from providers.rules import OUTCOME_BYTES_MAX, TEXT_BYTES_MAX, check, check_text, is_storable

ATTEMPTS = 5
"""How often a commit is tried when it was refused for something that is gone a moment later."""

# What the statement meets when another commit was faster: nothing was applied, ask what it was.
_REFUSALS = errors.CONFLICTS | {errors.UNIQUE_VIOLATION}
_NOTHING = "[]"
_CHARACTER_BYTES_MAX = 4
# Where in the arguments the receipt's texts are that are not JSON.
_RECEIPT = slice(7, 13)
# How many of the arguments the statements for new and for changed heads take: what comes next are
# the heads that are changed, then the counters.
_NEW, _CHANGED = 16, 17


@dataclass(slots=True)
class _Sent:
    """Whether a commit was sent whose answer did not come."""

    in_doubt: bool = False


async def commit(
    connections: Connections, resource: ResourceIdentity, write_set: WriteSet, timeout: float
) -> CommitOutcome:
    """See ``IMemoryProvider.commit``."""
    connections.check_open()
    statement, arguments = encode(resource, write_set)
    sent = _Sent()
    work = partial(
        _attempts,
        resource=resource,
        write_set=write_set,
        statement=statement,
        given=arguments,
        sent=sent,
    )
    try:
        return await connections.run(work, timeout=timeout)
    except errors.DRIVER as error:
        raise errors.translate(error, in_doubt=sent.in_doubt, writing=True) from error


async def _attempts(
    link: Connection,
    resource: ResourceIdentity,
    write_set: WriteSet,
    statement: str,
    given: tuple[object, ...],
    sent: _Sent,
) -> CommitOutcome:
    for _ in range(ATTEMPTS):
        try:
            sent.in_doubt = True
            applied = await link.fetchval(statement, *given)
        except asyncpg.PostgresError as error:
            if error.sqlstate == errors.LOCK_NOT_AVAILABLE:
                return Contended()
            sent.in_doubt = errors.ends_session(error)
            if error.sqlstate not in _REFUSALS:
                raise
        else:
            sent.in_doubt = False
            if applied:
                return Committed()
        outcome = await _classify(link, resource, write_set)
        if outcome is not None:
            return outcome
    return Contended()


async def _classify(
    link: Connection, resource: ResourceIdentity, write_set: WriteSet
) -> CommitOutcome | None:
    project = write_set.project
    key = write_set.receipt.key
    row = await link.fetchrow(
        CLASSIFY,
        project.tenant_id,
        project.project_id,
        key.actor_fingerprint,
        key.idempotency_key,
        [put.record.current.record_id for put in write_set.heads],
        [revision.revision_id for revision in _revisions(write_set)],
        [*write_set.must_be_absent, *(each.key for each in write_set.claims)],
        list(expected_counters(write_set)),
        None if write_set.effect is None else write_set.effect.receipt_id,
    )
    if row is None:
        check_marker(resource, None, None)
        return None
    check_marker(resource, row["resource_id"], row["generation"])
    facts = Facts(
        receipt=to_receipt(row["receipt"], key),
        holders=to_holders(row["keys"]),
        counters=to_counters(row["counters"]),
        heads={record_id: (number, name) for record_id, number, name in _listed(row["heads"])},
        revision_ids=frozenset(_listed(row["revision_ids"])),
        has_effect=row["has_effect"],
    )
    return judge(write_set, facts)


def _listed(text: str | None) -> list[Any]:
    return [] if text is None else orjson.loads(text)


# -------------------- the statement's arguments


def encode(resource: ResourceIdentity, write_set: WriteSet) -> tuple[str, tuple[object, ...]]:
    """Return the statement that commits a write set, and its arguments.

    Raises:
        WriteSetInvalidError: The write set breaks a rule or a limit. Not retryable.
    """
    try:
        check(write_set)
        given = _encode(resource, write_set)
    except (TypeError, ValueError) as error:
        check_text(write_set)
        raise WriteSetInvalidError("the write set holds something that is not JSON") from error
    # JSON is never shorter than the text in it, spells NUL in one way only and refuses surrogates:
    # a look at what is sent clears most write sets.
    texts = [value for value in given if isinstance(value, str)]
    plain = (texts[0], texts[1], *map(str, given[_RECEIPT]))
    if (
        sum(map(len, texts)) * _CHARACTER_BYTES_MAX > TEXT_BYTES_MAX
        or any("\\u0000" in text for text in texts)
        or not all(map(is_storable, plain))
    ):
        check_text(write_set)
    return _suited(write_set, given)


def _suited(write_set: WriteSet, given: tuple[object, ...]) -> tuple[str, tuple[object, ...]]:
    """Return the least statement that does all of a write set, and what it takes."""
    if given[_CHANGED]:  # counters, and effects, which have one each
        return COMMIT, given
    if not given[_NEW]:
        return COMMIT_NEW, given[:_NEW]
    if any(put.expected_revision is None for put in write_set.heads):
        return COMMIT, given
    return COMMIT_CHANGED, given[:_CHANGED]


def _encode(resource: ResourceIdentity, write_set: WriteSet) -> tuple[object, ...]:
    receipt = write_set.receipt
    keys = _key_rows(write_set)
    counters = expected_counters(write_set)
    outcome = to_json(receipt.outcome)
    if len(outcome.encode()) > OUTCOME_BYTES_MAX:
        raise WriteSetInvalidError("the receipt's outcome is too large")
    effects = () if write_set.effect is None else (effect_columns(write_set.effect),)
    numbers: list[float] = []
    return (
        write_set.project.tenant_id,
        write_set.project.project_id,
        resource.resource_id,
        resource.generation,
        _revision_rows(write_set, numbers),
        to_json(keys) if keys else _NOTHING,
        [row["key"] for row in keys],
        receipt.key.actor_fingerprint,
        receipt.key.idempotency_key,
        receipt.method,
        receipt.fingerprint,
        to_json([(ref.record_id, ref.revision) for ref in receipt.refs]),
        receipt.effect_id,
        outcome,
        receipt.create_time,
        numbers,
        [p.record.current.record_id for p in write_set.heads if p.expected_revision is not None],
        list(counters),
        list(counters.values()),
        to_json(effects) if effects else _NOTHING,
    )


def _revisions(write_set: WriteSet) -> tuple[Revision, ...]:
    return (*write_set.history, *(put.record.current for put in write_set.heads))


def _revision_rows(write_set: WriteSet, numbers: list[float]) -> str:
    rows = [revision_columns(revision) for revision in write_set.history]
    for put in write_set.heads:
        row = revision_columns(put.record.current)
        row["record_create_time"] = put.record.create_time
        row["search_text"] = search_text(put.record.current.content)
        if put.expected_revision is not None:
            row["expected_revision"] = put.expected_revision
            row["expected_revision_id"] = expected_revision_id(write_set, put)
        if put.record.current.kind is Kind.MEMORY:
            row |= filter_columns(put.record.current.facet)
            if put.entry is not None:
                row |= entry_columns(put.entry, numbers)
        rows.append(row)
    return to_json(rows)


def _key_rows(write_set: WriteSet) -> list[dict[str, object]]:
    rows: dict[str, dict[str, object]] = {}
    for claim in write_set.claims:
        rows[claim.key] = {
            "action": "claim",
            "record_id": claim.record_id,
            "held_by": claim.held_by,
            "free_of_tombstone": True,
        }
    for release in write_set.releases:
        rows[release.key] = {"action": "release", "record_id": release.record_id}
    for tombstone in write_set.tombstones:
        rows[tombstone.key] = {
            "action": "bury",
            "tombstone_kind": tombstone.kind,
            "tombstone_time": tombstone.create_time,
        }
    for key in write_set.must_be_absent:
        rows.setdefault(key, {})["free_of_tombstone"] = True
    return [{"key": key, **row} for key, row in rows.items()]
