"""Fingerprints and receipts: what makes a write safe to retry (004-61..64).

The scope of a key is (tenant, project, actor, provider resource). A fingerprint is the SHA-256 over
method, fingerprint version, full scope and the normalised fields that were set; never over wire
bytes, so fields added later do not change it.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from functools import cache
from typing import Final

import orjson

from broker.domain.errors import IdempotencyKeyReusedError
from broker.domain.requests import ScopeInput
from providers.model import IdempotencyReceipt, ReceiptKey, RevisionRef

FINGERPRINT_VERSION: Final = 1


def fingerprint(method: str, scope: ScopeInput, set_fields: Mapping[str, object]) -> str:
    """Return 64 lower-case hex digits over a request.

    Fields that are ``None`` or empty count as not set. Times are written in UTC with microseconds.
    """
    document = {
        "method": method,
        "version": FINGERPRINT_VERSION,
        "scope": {name: getattr(scope, name) for name in _names(ScopeInput)},
        "fields": _set_only(set_fields),
    }
    canonical = orjson.dumps(document, option=orjson.OPT_SORT_KEYS | orjson.OPT_UTC_Z)
    return hashlib.sha256(canonical).hexdigest()


def _set_only(value: Mapping[str, object]) -> dict[str, object]:
    plain = ((key, _plain(item)) for key, item in value.items())
    return {key: item for key, item in plain if item or item == 0}  # 0 and false are set


def _plain(item: object) -> object:
    kind: type = type(item)
    names = _names(kind)
    return _set_only({name: getattr(item, name) for name in names}) if names else item


@cache
def _names(kind: type) -> tuple[str, ...]:
    return tuple(each.name for each in fields(kind)) if is_dataclass(kind) else ()


def receipt_for(
    *,
    key: ReceiptKey,
    method: str,
    fingerprint: str,
    refs: tuple[RevisionRef, ...],
    create_time: datetime,
    effect_id: str | None = None,
    outcome: Mapping[str, str | bool | int | float] | None = None,
) -> IdempotencyReceipt:
    """Return the receipt of a write that left these revisions, and this receipt for an effect."""
    return IdempotencyReceipt(
        key=key,
        method=method,
        fingerprint=fingerprint,
        refs=refs,
        effect_id=effect_id,
        outcome=outcome or {},
        create_time=create_time,
    )


def check_same_request(receipt: IdempotencyReceipt, method: str, fingerprint: str) -> None:
    """Refuse a key that another request has used.

    Raises:
        IdempotencyKeyReusedError: not retryable with this key.
    """
    if (receipt.method, receipt.fingerprint) != (method, fingerprint):
        raise IdempotencyKeyReusedError
