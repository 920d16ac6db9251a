"""What heads enter, told as ranges of one list, is what each of them enters by itself."""

from collections import defaultdict
from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st

from providers.conformance import specimens
from providers.eligibility import is_counted
from providers.folding import folded
from providers.heads import entered, is_moved
from providers.model import Kind, ProjectKey, Revision, State, Trust
from providers.recall import Eligible, Superseded
from providers.redis.sets import Entries, entries, standing

PROJECT = ProjectKey("t1", "p1")
TAGS = ("build", "Build", "cross-team", "\u00df", "ss", "\u77e5")


@st.composite
def revisions(draw: st.DrawFn) -> list[Revision]:
    """Draw heads of a few agents, of every kind, state and trust."""
    return [
        specimens.memory(
            f"r{number}",
            agent_id=draw(st.sampled_from(("a1", "a2", "a3"))),
            kind=draw(st.sampled_from(Kind)),
            state=draw(st.sampled_from(State)),
            trust=draw(st.sampled_from(Trust)),
            source_run_id=draw(st.sampled_from((None, "run-1"))),
            content=specimens.content(tags=tuple(draw(st.sets(st.sampled_from(TAGS))))),
        ).current
        for number in range(draw(st.integers(0, 6)))
    ]


def told(given: Entries) -> dict[str, list[bytes]]:
    """Return the members of each set, sorted; a set is named once and never for nothing."""
    assert len({name for name, _, _ in given.sets}) == len(given.sets)
    assert all(1 <= first <= last <= len(given.members) for _, first, last in given.sets)
    return {name: sorted(given.members[first - 1 : last]) for name, first, last in given.sets}


def each_by_itself(heads: Iterable[Revision]) -> dict[str, list[bytes]]:
    members: dict[str, list[bytes]] = defaultdict(list)
    for now in heads:
        stands = standing(now)
        name = f"{stands.order}{now.record_id}"
        if now.state is not State.FORGOTTEN:
            for key in ("order", f"order/{now.agent_id}"):
                members[key].append(name.encode())
            for key in ("tagged", f"tagged/{now.agent_id}"):
                tags = {folded(each) for each in now.content.tags}
                members[key] += [f"{tag}\0{name}".encode() for tag in tags]
        if is_moved(now):
            members[f"moved/{now.agent_id}"].append(now.record_id.encode())
        for key in entered(now):
            members[key].append(f"{stands.place}{now.record_id}".encode())
        asked = Eligible(
            project=PROJECT,
            agent_id=now.agent_id,
            at=now.create_time,
            superseded=Superseded.ALL,
        )
        if is_counted(now, asked):
            is_live = now.state is State.ACTIVE
            member = f"{now.record_id}\0{'l' if is_live else 'r'}"
            members[f"recalled/{now.agent_id}"].append(member.encode())
            if not is_live:
                members[f"replaced/{now.agent_id}"].append(
                    f"{stands.place}{now.record_id}".encode()
                )
    return {key: sorted(each) for key, each in members.items() if each}


@given(revisions())
def test_ranges_hold_what_each_head_enters(heads: list[Revision]) -> None:
    """004-67, 004-89: nothing is left out, nothing is of another agent, nothing is told twice."""
    assert told(entries((now, standing(now)) for now in heads)) == each_by_itself(heads)
