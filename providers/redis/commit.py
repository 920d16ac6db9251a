"""Writes: one script, which applies all of a write set or tells what it met."""

from collections.abc import Sequence
from typing import Any

from providers.counters import expected_counters
from providers.documents import receipt_document, to_json, to_receipt
from providers.errors import StoredDataInvalidError, WriteSetInvalidError
from providers.folding import search_text
from providers.heads import size_of
from providers.model import HeadPut, Kind, Revision, RevisionRef, State, Tombstone, WriteSet
from providers.redis import keys
from providers.redis.calls import Call, Calls, project_call
from providers.redis.entries import entry_document
from providers.redis.rows import head_document, revision_document, to_holder, to_list
from providers.redis.scripts import Script
from providers.redis.sets import entries, is_found, standing
from providers.refusal import Facts, expected_revision_id, judge
from providers.requests import CommitOutcome, Committed, KeyHolder
from providers.rules import (
    OUTCOME_BYTES_MAX,
    TEXT_BYTES_MAX,
    check,
    check_text,
    is_storable,
)

_FREE = KeyHolder(None, None)
_NUL = b"\\u0000"


async def commit(calls: Calls, write_set: WriteSet, timeout: float) -> CommitOutcome:
    """See ``IMemoryProvider.commit``."""
    calls.connections.lender.check_open()
    call = encode(write_set)
    verdict, *met = await calls.write(call, timeout=timeout)
    if verdict == b"applied":
        return Committed()
    outcome = judge(write_set, _facts(write_set, met))
    if outcome is None:
        raise StoredDataInvalidError("the store refused a write set that nothing speaks against")
    return outcome


def _facts(write_set: WriteSet, met: Sequence[Any]) -> Facts:
    receipt, holders, counters, heads, used, is_told = met
    tag = keys.tag_of(keys.project_digest(write_set.project))
    key = write_set.receipt.key
    asked = _asked_keys(write_set)
    found = zip(asked, holders, strict=True)
    try:
        return Facts(
            receipt=None if receipt is None else to_receipt(to_list(tag, receipt), key),
            holders={name: to_holder(each) or _FREE for name, each in found},
            counters=dict(zip(expected_counters(write_set), map(int, counters), strict=True)),
            heads={
                record_id.decode(): (int(number), revision_id.decode())
                for record_id, number, revision_id in zip(*[iter(heads)] * 3, strict=True)
            },
            revision_ids=frozenset(each.decode() for each in used),
            has_effect=is_told == 1,
        )
    except ValueError:
        raise StoredDataInvalidError("what a commit met is damaged") from None


# -------------------- the script's request


def encode(write_set: WriteSet) -> Call:
    """Return the call that commits a write set.

    Raises:
        WriteSetInvalidError: The write set breaks a rule or a limit. Not retryable.
    """
    try:
        check(write_set)
        if len(to_json(write_set.receipt.outcome)) > OUTCOME_BYTES_MAX:
            raise WriteSetInvalidError("the receipt's outcome is too large")
        call = _encode(write_set)
    except (TypeError, ValueError) as error:
        check_text(write_set)
        raise WriteSetInvalidError("the write set holds something that is not JSON") from error
    # JSON is never shorter than the text in it, spells NUL in one way only and refuses surrogates:
    # a look at what is sent clears most write sets.
    sent = (call.request, *call.documents)
    project = write_set.project
    if (
        sum(map(len, sent)) > TEXT_BYTES_MAX
        or any(_NUL in each for each in sent)
        or not is_storable(project.tenant_id + project.project_id)
    ):
        check_text(write_set)
    return call


def _encode(write_set: WriteSet) -> Call:
    tag = keys.tag_of(keys.project_digest(write_set.project))
    receipt = write_set.receipt
    revisions = (*write_set.history, *(put.record.current for put in write_set.heads))
    chains: dict[str, list[Revision]] = {}
    for each in revisions:
        chains.setdefault(each.record_id, []).append(each)
    heads = [(put.record, standing(put.record.current)) for put in write_set.heads]
    entering = entries((record.current, stands) for record, stands in heads)
    request = {
        "receipt": keys.receipt_field(receipt.key.actor_fingerprint, receipt.key.idempotency_key),
        "effect": _effect(write_set, tag),
        "heads": [
            _head(write_set, put, chains[put.record.current.record_id]) for put in write_set.heads
        ],
        "revisions": [(_field(each), each.revision_id) for each in revisions],
        "sets": entering.sets,
        "keys": [(key, *asked) for key, asked in _asked_keys(write_set).items()],
        "counters": list(expected_counters(write_set).items()),
    }
    documents = [to_json((tag, *receipt_document(receipt)))]
    documents += [revision_document(tag, each) for each in revisions]
    for put, (record, stands) in zip(write_set.heads, heads, strict=True):
        documents += [head_document(tag, record, stands), _text(record.current)]
        documents.append(_entry(tag, put))
    documents += entering.members
    return project_call(Script.COMMIT, write_set.project, request, documents)


def _field(revision: Revision) -> str:
    return keys.revision_field(RevisionRef(revision.record_id, revision.revision))


def _head(write_set: WriteSet, put: HeadPut, chain: Sequence[Revision]) -> tuple[object, ...]:
    links = {each.superseded_by_record_id for each in chain} - {None}
    return (
        put.record.current.record_id,
        put.expected_revision or 0,
        "" if put.expected_revision is None else expected_revision_id(write_set, put),
        sum(map(size_of, chain)),
        sorted(map(str, links)),
        is_found(put.record.current),
    )


def _text(now: Revision) -> bytes:
    """Return what is searched of a head; never empty but where it is not searched."""
    return b"" if now.state is State.FORGOTTEN else search_text(now.content).encode()


def _entry(tag: str, put: HeadPut) -> bytes:
    """Return the entry that a head is put with; empty where it keeps its own, or has none."""
    now = put.record.current
    return entry_document(tag, now.record_id, put.entry if now.kind is Kind.MEMORY else None)


def _effect(write_set: WriteSet, tag: str) -> tuple[object, ...] | None:
    effect = write_set.effect
    if effect is None:
        return None
    values = (effect.run_id, effect.sequence, effect.receipt_id, effect.receipt, effect.accept_time)
    return effect.receipt_id, effect.run_id, effect.sequence, to_json((tag, *values)).decode()


def _asked_keys(write_set: WriteSet) -> dict[str, tuple[object, ...]]:
    """Return for each key: what to do, record, holder, whether a tombstone is in the way, value."""
    guarded = set(write_set.must_be_absent)
    asked: dict[str, tuple[object, ...]] = {}
    for claim in write_set.claims:
        value = f"r{claim.record_id}"
        asked[claim.key] = ("claim", claim.record_id, claim.held_by, True, value)
    for release in write_set.releases:
        is_guarded = release.key in guarded
        asked[release.key] = ("release", release.record_id, None, is_guarded, None)
    for tombstone in write_set.tombstones:
        is_guarded = tombstone.key in guarded
        asked[tombstone.key] = ("bury", None, None, is_guarded, _buried(tombstone))
    for key in write_set.must_be_absent:
        asked.setdefault(key, ("", None, None, True, None))
    return asked


def _buried(tombstone: Tombstone) -> str:
    return f"t{to_json((tombstone.kind, tombstone.create_time)).decode()}"
