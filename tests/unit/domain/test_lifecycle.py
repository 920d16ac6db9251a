"""The table of verbs: every kind, state and trust, allowed or refused with the reason."""

from dataclasses import replace
from datetime import timedelta
from itertools import product

import pytest

from broker.domain import lifecycle
from broker.domain.authority import Authorized, Grant, GrantedOn, Permission
from broker.domain.call import Call, Caller, RunScope
from broker.domain.errors import (
    PermissionMissingError,
    RunSelectionNotFoundError,
    StateNotAllowedError,
    TokenBoundError,
)
from broker.domain.lifecycle import Verb, check_may_judge
from broker.domain.requests import RejectKind
from broker.domain.supersession import superseded
from providers.model import (
    ChangeKind,
    HeadPut,
    Kind,
    MemoryFacet,
    OriginTier,
    Record,
    Sensitivity,
    SourceType,
    State,
    Trust,
)
from providers.requests import ChainLink
from tests.unit.domain.test_records import CONTENT, NOW, head, stamp

M, D, P, S = Kind.MEMORY, Kind.DECISION, Kind.PROPOSAL, Kind.SESSION_CONTEXT
LATER = NOW + timedelta(seconds=1)
ANY = set(Trust)
UNDECIDED = {Trust.PENDING, Trust.LEGACY}
DECIDED = {Trust.APPROVED, Trust.REJECTED}

# Verb, kind, state, trusts before; state after, trust after (None: as it was), change kind.
ROWS = [
    (Verb.ARCHIVE, M, State.ACTIVE, ANY, State.ARCHIVED, None, ChangeKind.ARCHIVED),
    (Verb.ARCHIVE, S, State.ACTIVE, ANY, State.ARCHIVED, None, ChangeKind.ARCHIVED),
    (Verb.ARCHIVE, D, State.ACTIVE, ANY, State.ARCHIVED, None, ChangeKind.DECISION_ARCHIVED),
    (Verb.UNARCHIVE, M, State.ARCHIVED, ANY, State.ACTIVE, None, ChangeKind.UNARCHIVED),
    (Verb.UNARCHIVE, S, State.ARCHIVED, ANY, State.ACTIVE, None, ChangeKind.UNARCHIVED),
    (Verb.SUPERSEDE, D, State.ACTIVE, ANY, State.SUPERSEDED, None, ChangeKind.DECISION_SUPERSEDED),
    *[
        (Verb.RESTORE, kind, state, ANY, State.ACTIVE, Trust.PENDING, change)
        for kind, change in ((M, ChangeKind.UPDATED), (D, ChangeKind.DECISION_RESTORED))
        for state in (State.ACTIVE, State.ARCHIVED, State.SUPERSEDED)
    ],
    (Verb.APPROVE, M, State.ACTIVE, UNDECIDED, State.ACTIVE, Trust.APPROVED, ChangeKind.APPROVED),
    (
        Verb.APPROVE,
        D,
        State.ACTIVE,
        UNDECIDED,
        State.ACTIVE,
        Trust.APPROVED,
        ChangeKind.DECISION_APPROVED,
    ),
    (Verb.REJECT, M, State.ACTIVE, ANY, State.ACTIVE, Trust.REJECTED, ChangeKind.REJECTED),
    (Verb.REJECT, D, State.ACTIVE, ANY, State.ACTIVE, Trust.REJECTED, ChangeKind.REJECTED),
    (
        Verb.REJECT,
        P,
        State.PENDING,
        ANY,
        State.REJECTED,
        Trust.REJECTED,
        ChangeKind.PROPOSAL_REJECTED,
    ),
    (Verb.REOPEN, M, State.ACTIVE, DECIDED, State.ACTIVE, Trust.PENDING, ChangeKind.REOPENED),
    (Verb.REOPEN, D, State.ACTIVE, DECIDED, State.ACTIVE, Trust.PENDING, ChangeKind.REOPENED),
]
EXPECTED = {
    (verb, kind, state, trust): (after, trust_after or trust, change)
    for verb, kind, state, trusts, after, trust_after, change in ROWS
    for trust in trusts
}


def do(verb: Verb, record: Record) -> HeadPut:
    """Do a verb to a record."""
    now = stamp(LATER)
    match verb:
        case Verb.ARCHIVE:
            return lifecycle.archived(record, reason="why", stamp=now)
        case Verb.UNARCHIVE:
            return lifecycle.unarchived(record, reason="why", stamp=now)
        case Verb.SUPERSEDE:
            other = ChainLink("other", "agent", Kind.DECISION, State.ACTIVE, None)
            return superseded(record, "other", [other], reason="why", stamp=now)
        case Verb.RESTORE:
            source = replace(record.current, content=replace(CONTENT, content="earlier"))
            return lifecycle.restored(
                record, source, reason="why", tier_cap=OriginTier.AGENT, stamp=now
            )
        case Verb.APPROVE:
            return lifecycle.approved(record, reason="why", stamp=now)
        case Verb.REJECT:
            return lifecycle.rejected(record, reject_kind=None, reason="why", stamp=now)
        case Verb.REOPEN:
            return lifecycle.reopened(record, reason="why", stamp=now)


@pytest.mark.parametrize(
    ("verb", "kind", "state", "trust"), list(product(Verb, Kind, State, Trust))
)
def test_every_transition(verb: Verb, kind: Kind, state: State, trust: Trust) -> None:
    """004-47, 004-52, 004-54, 004-57, R2: what is not in the table is refused, and why is told."""
    record = head(kind, state, trust)
    expected = EXPECTED.get((verb, kind, state, trust))
    if expected is None:
        with pytest.raises(StateNotAllowedError) as refused:
            do(verb, record)
        assert refused.value.metadata == {
            "kind": kind.name,
            "state": state.name,
            "trust": trust.name,
        }
        return
    if verb is Verb.RESTORE and trust is Trust.REJECTED:
        expected = (State.ACTIVE, Trust.REJECTED, expected[2])
    put = do(verb, record)
    after = put.record.current
    assert (after.state, after.trust, after.change_kind) == expected
    assert put.expected_revision == record.current.revision
    assert (after.revision, after.previous_revision_id) == (2, record.current.revision_id)
    assert (after.reason, after.create_time) == ("why", LATER)
    assert after.content == (
        replace(CONTENT, content="earlier") if verb is Verb.RESTORE else CONTENT
    )


def test_the_table_is_the_whole_table() -> None:
    """004-47: the product's table and this one name the same cases."""
    product_cases = {
        (verb, kind, state, trust)
        for verb, kinds in lifecycle.ALLOWED.items()
        for kind, pairs in kinds.items()
        for state, trust in pairs
    }
    assert product_cases == set(EXPECTED)


@pytest.mark.parametrize("kind", [None, *RejectKind])
def test_a_rejection_says_since_when_and_why_until_it_is_reopened(kind: RejectKind | None) -> None:
    """002-16: kept with the record, and gone with the rejection."""
    put = lifecycle.rejected(head(), reject_kind=kind, reason=None, stamp=stamp(LATER))
    facet = put.record.current.facet
    assert facet is not None
    assert facet.invalidate_time == LATER
    assert facet.invalidation_reason == ("rejected" if kind is None else f"rejected_{kind.value}")
    reopened = lifecycle.reopened(put.record, reason=None, stamp=stamp(LATER)).record.current.facet
    assert reopened is not None
    assert (reopened.invalidate_time, reopened.invalidation_reason) == (None, None)


def test_a_restore_clears_the_link_and_keeps_the_facet() -> None:
    """004-52, 000-08: content comes back, what is known about it stays, no tier rises."""
    facet = MemoryFacet(source_type=SourceType.OPERATOR, origin_tier=OriginTier.OPERATOR)
    record = head(Kind.DECISION, State.SUPERSEDED, facet=facet)
    linked = Record(replace(record.current, superseded_by_record_id="other"), record.create_time)
    source = replace(record.current, content=replace(CONTENT, content="earlier"), facet=None)
    after = lifecycle.restored(
        linked, source, reason=None, tier_cap=OriginTier.AGENT, stamp=stamp(LATER)
    ).record.current
    assert after.superseded_by_record_id is None
    assert after.facet == replace(facet, origin_tier=OriginTier.AGENT)
    assert after.reason == "restored from revision 1"


@pytest.mark.parametrize("head_facet", [None, MemoryFacet(sensitivity=Sensitivity.PUBLIC)])
def test_text_that_comes_back_is_as_sensitive_as_it_was(head_facet: MemoryFacet | None) -> None:
    """002-20: an edit that made a record less sensitive does not declassify its history."""
    record = head(facet=head_facet)
    secret = replace(record.current, facet=MemoryFacet(sensitivity=Sensitivity.RESTRICTED))
    plain = replace(record.current, facet=MemoryFacet(sensitivity=Sensitivity.PUBLIC))
    for source, expected in ((secret, Sensitivity.RESTRICTED), (plain, None)):
        facet = lifecycle.restored(
            record, source, reason=None, tier_cap=OriginTier.AGENT, stamp=stamp(LATER)
        ).record.current.facet
        before = None if head_facet is None else head_facet.sensitivity
        assert (None if facet is None else facet.sensitivity) == (expected or before)


WRITES = Grant(on=GrantedOn.PROJECT, resource_id="project", role_revision=1)


def authorized(*, bound: bool, write: bool) -> Authorized:
    """Return a check that passed."""
    caller = Caller(
        issuer="https://i",
        subject="s",
        bearer="Bearer x",
        bound_project_id="project" if bound else None,
    )
    return Authorized(
        call=Call(caller, "request", deadline=1e18),
        scope=RunScope("project", "run"),
        tenant_id="tenant",
        membership_revision=1,
        grants={Permission.WRITE_PROJECTS: WRITES} if write else {},
        selection=RunSelectionNotFoundError("none"),
    )


def test_who_may_judge_a_memory() -> None:
    """004-08 and ours: WriteProjects and a token bound to nothing; decisions need neither."""
    memory, decision = head().current, head(Kind.DECISION).current
    check_may_judge(memory, authorized(bound=False, write=True))
    with pytest.raises(PermissionMissingError) as refused:
        check_may_judge(memory, authorized(bound=False, write=False))
    assert refused.value.metadata == {"permission": "WriteProjects"}
    with pytest.raises(TokenBoundError):
        check_may_judge(memory, authorized(bound=True, write=True))
    check_may_judge(decision, authorized(bound=True, write=False))
