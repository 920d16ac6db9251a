"""What a provider may not give, and what the reply tells of decisions that no context takes."""

import pytest

from broker.domain.context import IgnoredDecision
from providers.errors import StoredDataInvalidError
from providers.model import Kind, Record, State, Trust
from tests.fixtures.candidates import (
    candidate,
    compiled,
    decision,
    entered,
    foreign,
    memory,
    note,
    sensitivity,
)

FAULTS = {
    "a proposal": candidate("x", kind=Kind.PROPOSAL),
    "a pending decision": decision("x", trust=Trust.PENDING),
    "a legacy decision": decision("x", trust=Trust.LEGACY),
    "a rejected decision": decision("x", trust=Trust.REJECTED),
    "an archived decision": decision("x", state=State.ARCHIVED),
    "a superseded decision": decision("x", state=State.SUPERSEDED),
    "a forgotten decision": decision("x", state=State.FORGOTTEN),
    "a rejected memory": memory("x", trust=Trust.REJECTED),
    "a legacy memory": memory("x", trust=Trust.LEGACY),
    "an archived memory": memory("x", state=State.ARCHIVED),
    "a superseded memory": memory("x", state=State.SUPERSEDED),
    "a forgotten memory": memory("x", state=State.FORGOTTEN),
    "a foreign memory without the tag": foreign("x", tags=("cross-teams", "team")),
    "a foreign memory that is pending": foreign("x", trust=Trust.PENDING),
    "a session note of another agent": note("x", agent="agent-2"),
    "a session note of another run": note("x", run="run-2"),
    "a session note of no run": note("x", run=None),
    "a pending session note": note("x", trust=Trust.PENDING),
    "an archived session note": note("x", state=State.ARCHIVED),
}


@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS)
def test_a_provider_may_not_give(fault: Record) -> None:
    """004-89, 004-99: what may not be seen fails the call, and is neither told nor passed over."""
    with pytest.raises(StoredDataInvalidError) as error:
        compiled(memory("m1"), fault, namespaces=("none",))
    assert "x" not in str(error.value).split()


def test_a_provider_may_not_give_one_record_twice() -> None:
    """004-99."""
    with pytest.raises(StoredDataInvalidError):
        compiled(memory("m1"), memory("m1", revision=2))


def test_what_a_native_provider_gives() -> None:
    """004-89: the peer's own case of candidates."""
    records = (
        decision("d"),
        memory("m1", trust=Trust.PENDING),
        foreign("m2", tags=("Cross-Team",), age=1),
        note("s"),
    )
    assert entered(compiled(*records)) == ["d", "m1", "m2", "s"]


def test_other_types_of_decisions_are_told_as_ignored() -> None:
    """004-L2: ``architecture`` is the mistake that is easily made; letters count as they are."""
    records = [
        decision("d1", of_type="scope"),
        decision("d3", of_type="architecture"),
        decision("d2", of_type="Architectural", age=9),
        decision("d4", of_type="secret", facet=sensitivity("restricted")),
    ]
    context = compiled(*records, sensitivity_ceiling=sensitivity("internal").sensitivity)
    assert entered(context) == ["d1"]
    assert context.ignored == (
        IgnoredDecision("d2", "Architectural"),
        IgnoredDecision("d3", "architecture"),
    )
    assert context.ignored_decision_count == 2
    assert "architecture" not in (context.text or "")


def test_ignored_decisions_alone_give_no_text() -> None:
    """004-97."""
    context = compiled(decision("d1", of_type="other"))
    assert (context.text, context.ignored_decision_count) == (None, 1)
