"""The rules a write set must keep by itself: clauses C-15 and G-10, and the model's own.

Written out once more for the reference, so that it shares no code with an adapter it judges.
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from itertools import pairwise
from math import isfinite

from providers.errors import WriteSetInvalidError
from providers.model import HeadPut, Revision, WriteSet

HEADS_MAX = 100
HISTORY_MAX = 500
KEYS_MAX = 100
TEXT_BYTES_MAX = 4 * 1024 * 1024
OUTCOME_BYTES_MAX = 1024

_FINGERPRINT = re.compile(r"[0-9a-f]{64}")
_UNSTORABLE = re.compile("[\0\ud800-\udfff]")


def check(write_set: WriteSet) -> None:
    """Refuse a write set that no store may take.

    Raises:
        WriteSetInvalidError: it breaks a rule or passes a limit. Not retryable.
    """
    _check_values(write_set)
    _check_sizes(write_set)
    _check_receipt(write_set)
    _check_keys(write_set)
    _check_heads(write_set)
    if write_set.effect is not None and write_set.effect.sequence < 1:
        raise WriteSetInvalidError("an effect's sequence counts from 1")


def _check_values(write_set: WriteSet) -> None:
    size = 0
    for value in _leaves(write_set):
        if isinstance(value, str) and not isinstance(value, Enum):
            if _UNSTORABLE.search(value):
                raise WriteSetInvalidError("text holds NUL or a surrogate")
            size += len(value.encode())
        elif isinstance(value, float) and not isfinite(value):
            raise WriteSetInvalidError("a number is not finite")
        elif isinstance(value, datetime) and value.tzinfo is None:
            raise WriteSetInvalidError("a time has no zone")
        elif not isinstance(value, str | int | float | datetime | None):
            raise WriteSetInvalidError(f"{type(value).__name__} is nothing a store keeps")
    if size > TEXT_BYTES_MAX:
        raise WriteSetInvalidError(f"{size} bytes of text, at most {TEXT_BYTES_MAX}")


def _leaves(value: object) -> Iterator[object]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            yield key
            yield from _leaves(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from _leaves(inner)
    elif is_dataclass(value):
        for each in fields(value):
            yield from _leaves(getattr(value, each.name))
    else:
        yield value


def _check_sizes(write_set: WriteSet) -> None:
    keys = (
        len(write_set.claims)
        + len(write_set.releases)
        + len(write_set.must_be_absent)
        + len(write_set.tombstones)
    )
    for what, size, most in (
        ("heads", len(write_set.heads), HEADS_MAX),
        ("further revisions", len(write_set.history), HISTORY_MAX),
        ("keys", keys, KEYS_MAX),
    ):
        if size > most:
            raise WriteSetInvalidError(f"{size} {what}, at most {most}")


def _check_receipt(write_set: WriteSet) -> None:
    receipt = write_set.receipt
    fingerprints = [receipt.fingerprint, receipt.key.actor_fingerprint]
    fingerprints += [
        revision.actor_fingerprint
        for revision in _revisions(write_set)
        if revision.actor_fingerprint is not None
    ]
    if not all(_FINGERPRINT.fullmatch(each) for each in fingerprints):
        raise WriteSetInvalidError("a fingerprint is not 64 lower-case hex digits")
    if len(json.dumps(dict(receipt.outcome), ensure_ascii=False).encode()) > OUTCOME_BYTES_MAX:
        raise WriteSetInvalidError("the receipt's outcome is too large")


def _check_keys(write_set: WriteSet) -> None:
    keys = [claim.key for claim in write_set.claims]
    keys += [release.key for release in write_set.releases]
    keys += [tombstone.key for tombstone in write_set.tombstones]
    if len(set(keys)) != len(keys):
        raise WriteSetInvalidError("a key occurs twice among claims, releases and tombstones")


def _check_heads(write_set: WriteSet) -> None:
    heads = {put.record.current.record_id: put for put in write_set.heads}
    if len(heads) != len(write_set.heads):
        raise WriteSetInvalidError("a record is put twice")
    if any(revision.record_id not in heads for revision in write_set.history):
        raise WriteSetInvalidError("history of a record that is not put")
    ids = [revision.revision_id for revision in _revisions(write_set)]
    if len(set(ids)) != len(ids):
        raise WriteSetInvalidError("a revision id occurs twice")
    for put in write_set.heads:
        _check_chain(put, write_set)


def _check_chain(put: HeadPut, write_set: WriteSet) -> None:
    current = put.record.current
    chain = [each for each in write_set.history if each.record_id == current.record_id]
    chain = [*sorted(chain, key=lambda each: each.revision), current]
    first = (put.expected_revision or 0) + 1
    if [each.revision for each in chain] != list(range(first, first + len(chain))):
        raise WriteSetInvalidError("revisions do not follow the expected one without a gap")
    if (chain[0].previous_revision_id is None) != (first == 1):
        raise WriteSetInvalidError("the first revision, and only it, has no link")
    for earlier, later in pairwise(chain):
        if later.previous_revision_id != earlier.revision_id:
            raise WriteSetInvalidError("a revision does not link to the one before")


def _revisions(write_set: WriteSet) -> Iterator[Revision]:
    yield from write_set.history
    for put in write_set.heads:
        yield put.record.current
