"""Chains of replacements."""

from dataclasses import replace
from datetime import timedelta

import pytest

from broker.domain.errors import (
    ChainTooLongError,
    ReplacementCycleError,
    ReplacementInvalidError,
)
from broker.domain.supersession import HOPS_MAX, check_chain, superseded
from providers.model import Kind, Record, State
from providers.requests import ChainLink
from tests.unit.domain.test_records import head, stamp


def link(name: str, after: str | None = None, **changes: object) -> ChainLink:
    """Return a link that serves, or leads to ``after``."""
    state = State.ACTIVE if after is None else State.SUPERSEDED
    return replace(ChainLink(name, "agent", Kind.DECISION, state, after), **changes)  # type: ignore[arg-type]


def chain_of(length: int) -> list[ChainLink]:
    """Return a chain of so many decisions, the last of which serves."""
    return [
        link(f"n{number}", f"n{number + 1}" if number + 1 < length else None)
        for number in range(length)
    ]


def record() -> Record:
    """Return the decision that is to be replaced."""
    return head(Kind.DECISION)


def test_a_link_is_younger_than_what_it_leads_to() -> None:
    """004-58, 004-87: also where the other decision's times come from a clock ahead of ours."""
    ahead = stamp().now + timedelta(minutes=5)
    before = head(Kind.DECISION)
    other = replace(before, current=replace(before.current, record_id="n0", create_time=ahead))
    put = superseded(record(), "n0", chain_of(1), reason=None, stamp=stamp(), replacement=other)
    assert put.record.current.create_time == ahead + timedelta(microseconds=1)
    behind = replace(other.current, create_time=stamp().now - timedelta(minutes=5))
    younger = replace(record(), current=replace(record().current, create_time=behind.create_time))
    old = replace(other, current=behind)
    put = superseded(younger, "n0", chain_of(1), reason=None, stamp=stamp(), replacement=old)
    assert put.record.current.create_time == stamp().now


def test_a_replacement_that_serves() -> None:
    """004-57, 004-58: active or archived at the end of its chain."""
    put = superseded(record(), "n0", chain_of(1), reason=None, stamp=stamp())
    assert put.record.current.superseded_by_record_id == "n0"
    check_chain(record(), "n0", [link("n0", state=State.ARCHIVED)])
    check_chain(record(), "n0", chain_of(3))


@pytest.mark.parametrize(
    "chain",
    [
        [],
        [link("n0", kind=Kind.MEMORY)],
        [link("n0", agent_id="other")],
        [link("n0", "n1"), link("n1", agent_id="other")],
        [link("n0", "n1"), link("n1", kind=Kind.PROPOSAL)],
        [link("n0", "gone")],
        [link("n0", state=State.SUPERSEDED)],
        [link("n0", state=State.FORGOTTEN)],
    ],
)
def test_replacements_that_cannot_serve(chain: list[ChainLink]) -> None:
    """004-58: absent, foreign or no decision anywhere in the chain, or an end out of use."""
    with pytest.raises(ReplacementInvalidError):
        check_chain(record(), "n0", chain)


def test_cycles() -> None:
    """004-58: itself, back to the record, or a chain that turns in itself."""
    own = record().current.record_id
    for chain, replacement in (
        ([link(own)], own),
        ([link("n0", own), link(own)], "n0"),
        ([link("n0", "n1"), link("n1", "n0"), link("n0", "n1")], "n0"),
    ):
        with pytest.raises(ReplacementCycleError):
            check_chain(record(), replacement, chain)


def test_chains_of_64_pass_and_65_fail() -> None:
    """004-58: hops from the superseded decision to the one that serves."""
    check_chain(record(), "n0", chain_of(HOPS_MAX))
    with pytest.raises(ChainTooLongError):
        check_chain(record(), "n0", chain_of(HOPS_MAX + 1))
