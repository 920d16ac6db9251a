"""Which decision may replace which: chains of replacements, bounded, without cycles (004-57..59).

That two racing replacements cannot make a cycle between them is the graph counter's work: every
change of a link advances it, and a commit that read an older one is decided again.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from broker.domain.errors import (
    ChainTooLongError,
    ReplacementCycleError,
    ReplacementInvalidError,
)
from broker.domain.lifecycle import Verb, check_allowed
from broker.domain.records import TICK, Stamp, successor
from providers.model import ChangeKind, HeadPut, Kind, Record, State
from providers.requests import ChainLink

HOPS_MAX: Final = 64
"""From a decision at the moment it is superseded to the one that serves in its place.

What a chain is extended by at its end is not counted against the decisions before.
"""

_SERVING: Final = frozenset({State.ACTIVE, State.ARCHIVED})
"""States of a last link that serves, whatever its trust: an archived one binds nobody either, and
who supersedes says which decision holds the place, not that it is confirmed (004-58)."""


def superseded(
    record: Record,
    replacement_id: str,
    chain: Sequence[ChainLink],
    *,
    reason: str | None,
    stamp: Stamp,
    replacement: Record | None = None,
) -> HeadPut:
    """Return the head replaced by another decision. ``chain`` starts at the replacement.

    With the head of the ``replacement`` the link is younger than that: its times may come from a
    clock ahead of ours, and who reads histories later tells by times what came first (004-87).

    Raises:
        StateNotAllowedError: not an active decision.
        ReplacementCycleError, ReplacementInvalidError, ChainTooLongError: not retryable.
    """
    check_allowed(record.current, Verb.SUPERSEDE)
    check_chain(record, replacement_id, chain)
    after = replace(record.current, state=State.SUPERSEDED, superseded_by_record_id=replacement_id)
    if replacement is not None:
        stamp = replace(stamp, now=max(stamp.now, replacement.current.create_time + TICK))
    return successor(
        record, after, reason=reason, change_kind=ChangeKind.DECISION_SUPERSEDED, stamp=stamp
    )


def check_chain(record: Record, replacement_id: str, chain: Sequence[ChainLink]) -> None:
    """Walk from the replacement to the end of its chain (004-58).

    Raises:
        ReplacementCycleError: the chain meets the record, or itself.
        ReplacementInvalidError: a link is missing, of another agent or no decision, or the last one
            cannot serve.
        ChainTooLongError: more than 64 hops from the record.
    """
    origin = record.current
    seen = {origin.record_id}
    wanted: str | None = replacement_id
    for hop, link in enumerate(chain, start=1):
        if link.record_id in seen:
            raise ReplacementCycleError("the replacement leads back to the record")
        if link.agent_id != origin.agent_id or link.kind is not Kind.DECISION:
            break
        if hop > HOPS_MAX:
            raise ChainTooLongError(f"more than {HOPS_MAX} replacements in a row")
        seen.add(link.record_id)
        wanted = link.superseded_by_record_id
        if wanted is None and link.state in _SERVING:
            return
        if wanted is None:
            break
    if wanted is not None and wanted in seen:
        raise ReplacementCycleError("the replacement leads back to the record")
    raise ReplacementInvalidError(
        "the replacement must be a decision of the same agent that serves, or leads to one"
    )
