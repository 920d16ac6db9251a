"""What an import puts on top of a history, and what an export's answer must be."""

from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Any, Final

import pytest

from broker.domain.errors import BundleConflictError, BundleIncompleteError, ReplacementInvalidError
from broker.domain.records import Stamp
from broker.transfer.bundle import Bundle, Chain, exported
from broker.transfer.importer import heads_of, imported
from broker.transfer.links import judged_links
from providers.conformance import specimens
from providers.model import ChangeKind, OriginTier, Record, Revision, SourceType, State, Trust
from tests.unit.transfer.test_links import chain

ACTOR: Final = specimens.digest("the importer")
TICK: Final = timedelta(microseconds=1)


def stamp(**changes: Any) -> Stamp:
    """Return a stamp one day after everything."""
    ids = count(1)
    given: dict[str, Any] = {
        "now": specimens.START + timedelta(days=1),
        "new_id": lambda: f"new-{next(ids)}",
        "actor_fingerprint": ACTOR,
    }
    return Stamp(**(given | changes))


def whole(record: Record, **changes: Any) -> Chain:
    """Return a chain of one revision."""
    current = replace(record.current, **changes)
    return Chain(Record(current, record.create_time), (current,))


def test_the_imported_head() -> None:
    """004-88, P6: active, pending, linked to nothing, of the importing run and actor."""
    old = chain("a", (0, None), (1, "b"))
    put = imported(old, "run-import", stamp())
    last, head = old.record.current, put.record.current
    assert put.expected_revision is None
    assert put.record.create_time == old.record.create_time
    assert head == replace(
        last,
        revision=3,
        revision_id="new-1",
        previous_revision_id=last.revision_id,
        state=State.ACTIVE,
        trust=Trust.PENDING,
        superseded_by_record_id=None,
        source_run_id="run-import",
        source_session_id=None,
        promoted_decision_id=None,
        reason=None,
        change_kind=ChangeKind.IMPORTED,
        actor_fingerprint=ACTOR,
        create_time=stamp().now,
    )


def test_rank_does_not_travel() -> None:
    """004-88, 000-08, R5: the origin counts as external; what was said against it is over."""
    facet = specimens.facet(origin_tier=OriginTier.OPERATOR)
    old = whole(
        specimens.memory("m"),
        facet=facet,
        trust=Trust.APPROVED,
        source_session_id="session",
        reason="because",
        state=State.ARCHIVED,
    )
    head = imported(old, "run-import", stamp()).record.current
    assert head.facet == replace(
        facet,
        origin_tier=OriginTier.EXTERNAL,
        corroboration=0,
        last_reinforce_time=None,
        invalidate_time=None,
        invalidation_reason=None,
    )
    assert (head.trust, head.state) == (Trust.PENDING, State.ACTIVE)
    assert (head.source_session_id, head.reason) == (None, None)
    assert head.content == old.record.current.content


@pytest.mark.parametrize("source", SourceType)
def test_nobody_speaks_for_an_operator(source: SourceType) -> None:
    """004-88, 000-08: such a source is claimed by who may, never by who carries a file."""
    facet = specimens.facet(source_type=source)
    old = whole(specimens.memory("m"), facet=facet)
    head = imported(old, "run-import", stamp()).record.current
    assert head.facet is not None
    claimed = source in {SourceType.OPERATOR, SourceType.MANUAL}
    assert head.facet.source_type is (SourceType.EXTERNAL if claimed else source)
    assert old.revisions[0].facet == facet


@pytest.mark.parametrize("flagged", [True, False])
def test_a_flag_stays(flagged: bool) -> None:
    """004-88: what was noted against a text is not lost on its way."""
    old = whole(specimens.memory("m"), facet=specimens.facet(flagged=flagged))
    head = imported(old, "run-import", stamp()).record.current
    assert head.facet is not None and head.facet.flagged is flagged


def test_time_goes_on() -> None:
    """004-88: a history from a clock ahead of ours is followed by one microsecond."""
    old = whole(specimens.memory("m"))
    behind = stamp(now=specimens.START - timedelta(hours=1))
    assert imported(old, "r", behind).record.current.create_time == (
        old.record.current.create_time + TICK
    )


def test_what_is_there_is_a_conflict() -> None:
    """004-87: the first of the bundle's records that is there, before any link is looked at."""
    chains = (whole(specimens.memory("m")), chain("a", (0, None), (1, "absent")))
    bundle = Bundle("p", chains[0].record.current.agent_id, chains)
    with pytest.raises(ReplacementInvalidError):
        heads_of(bundle, judged_links(bundle), {}, "r", stamp())
    with pytest.raises(BundleConflictError) as refused:
        heads_of(
            bundle,
            judged_links(bundle),
            {"a": specimens.memory("a", agent_id="foreign")},
            "r",
            stamp(),
        )
    assert refused.value.metadata == {"index": "1"}
    assert "'a'" not in str(refused.value)


def test_every_head_has_its_own_id() -> None:
    """004-52: in the order of the bundle."""
    chains = tuple(whole(specimens.memory(f"m{n}")) for n in range(3))
    bundle = Bundle("p", chains[0].record.current.agent_id, chains)
    puts = heads_of(bundle, judged_links(bundle), {}, "r", stamp())
    assert [put.record.current.record_id for put in puts] == ["m0", "m1", "m2"]
    assert len({put.record.current.revision_id for put in puts}) == 3


# -------------------- what an export makes of the store's answer


def torn(**changes: Any) -> tuple[Record, tuple[Revision, ...]]:
    """Return a chain of two of which the second revision was changed."""
    made = chain("a", (0, None), (1, None))
    second = replace(made.revisions[1], **changes)
    return Record(second, made.record.create_time), (made.revisions[0], second)


def test_the_order_of_a_bundle() -> None:
    """004-85: decisions, then memories, each by id."""
    chains = [whole(specimens.memory(name)) for name in ("z", "a", "B")]
    chains += [whole(specimens.decision(name)) for name in ("y", "b")]
    made = exported("p", "agent", [(each.record, each.revisions) for each in chains])
    assert [each.record.current.record_id for each in made.chains] == ["b", "y", "B", "a", "z"]


@pytest.mark.parametrize(
    "answer",
    [
        torn(revision=3),
        torn(previous_revision_id="another"),
        torn(previous_revision_id=None),
        torn(record_id="b"),
        (torn()[0], torn()[1][:1]),
        (torn()[0], torn()[1][1:]),
        (torn()[0], ()),
        (torn()[0], torn()[1][::-1]),
    ],
)
def test_a_torn_answer(answer: tuple[Record, tuple[Revision, ...]]) -> None:
    """004-85: a gap, a link that does not fit, or a head that is not the newest revision."""
    exported("p", "agent", [torn()])
    with pytest.raises(BundleIncompleteError):
        exported("p", "agent", [answer])
