"""Between the vocabulary's dataclasses and what the statements take and give."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import orjson

from providers import documents
from providers.errors import StoredDataInvalidError
from providers.model import (
    AcceptedEffect,
    IdempotencyReceipt,
    Kind,
    MemoryFacet,
    ReceiptKey,
    Record,
    Revision,
    State,
)
from providers.requests import ChainLink, KeyHolder

SNAPSHOT_WIDTH = 23
"""How many columns of a row make up a revision."""
_FACET = 12


def to_json(value: object) -> str:
    """Write a value as JSON; see ``documents.to_json``."""
    return documents.to_json(value).decode()


def effect_columns(effect: AcceptedEffect) -> dict[str, object]:
    """Return an effect by column name."""
    return {
        "run_id": effect.run_id,
        "sequence": effect.sequence,
        "receipt_id": effect.receipt_id,
        "receipt": effect.receipt,
        "accept_time": effect.accept_time,
    }


# -------------------- from the store


def to_revision(row: Sequence[Any], *, brief: bool = False) -> Revision:
    """Return the revision that the columns of a row hold, in the order of the statements.

    With ``brief`` what a brief page leaves out is left out of the facet; else the row has it so.

    Raises:
        StoredDataInvalidError: They hold none. Not retryable.
    """
    facet = row[_FACET]
    return documents.make_revision(row, None if facet is None else _to_facet(facet, brief=brief))


def to_record(row: Sequence[Any], create_time: datetime, *, brief: bool = False) -> Record:
    """Return the head that the columns of a row hold; see ``to_revision``.

    Raises:
        StoredDataInvalidError: They hold none. Not retryable.
    """
    current = to_revision(row, brief=brief)
    try:
        return Record(current, documents.known_time(create_time))
    except TypeError as error:
        raise StoredDataInvalidError("a stored head's time is no time") from error


def _to_facet(text: str, *, brief: bool) -> MemoryFacet:
    try:
        document = orjson.loads(text)
        if brief:
            document.pop("metadata", None)
        return documents.to_facet(document)
    except (KeyError, TypeError, ValueError, OverflowError, AttributeError) as error:
        raise StoredDataInvalidError("a stored revision holds an unknown value") from error


def to_receipt(text: str | None, key: ReceiptKey) -> IdempotencyReceipt | None:
    """Return the receipt that a statement gave as a JSON list, or ``None``.

    Raises:
        StoredDataInvalidError: It is none. Not retryable.
    """
    return None if text is None else documents.to_receipt(orjson.loads(text), key)


def to_holders(text: str | None) -> dict[str, KeyHolder]:
    """Return what keys hold; a key that is free is left out."""
    listed = [] if text is None else orjson.loads(text)
    return {
        key: KeyHolder(record_id, tombstone_kind)
        for key, record_id, tombstone_kind in listed
        if record_id is not None or tombstone_kind is not None
    }


def to_counters(text: str | None) -> dict[str, int]:
    """Return counters by name."""
    return {} if text is None else dict(orjson.loads(text))


def to_chain(text: str | None) -> tuple[ChainLink, ...]:
    """Return the links of a chain in walking order.

    Raises:
        StoredDataInvalidError: A link is of an unknown kind or state. Not retryable.
    """
    if text is None:
        return ()
    try:
        return tuple(
            ChainLink(record_id, agent_id, Kind(kind), State(state), superseded_by)
            for record_id, agent_id, kind, state, superseded_by in orjson.loads(text)
        )
    except ValueError as error:
        raise StoredDataInvalidError("a stored head holds an unknown value") from error
