"""The ordered sets that heads are found by, and as which members they stand in them."""

from collections.abc import Iterable
from dataclasses import dataclass

from providers.eligibility import TRUSTED
from providers.folding import folded
from providers.heads import entered, is_moved
from providers.model import Kind, Revision, State
from providers.order import largest_first, newest_first


@dataclass(frozen=True, slots=True)
class Standing:
    """What a head stands by in the sets; kept in the head too, so that it can leave them.

    Attributes:
        order: 16 hex digits that sort as a search does, newest first.
        place: 32 hex digits that sort as context candidates do: by importance, then by time.
        entered: The sets that it is in by its place: of context candidates, and of memories that
            were replaced and that recall may be asked for all the same.
        tags: Folded, sorted, each once.
        is_listed: Whether searches find it.
        is_moved: Whether it goes with its agent's export.
        recalled: As what recall looks through it, of those that it stands among by its id: ``l``
            for a memory that is live, ``r`` for one that was replaced, or nothing.
    """

    order: str
    place: str
    entered: list[str]
    tags: list[str]
    is_listed: bool
    is_moved: bool
    recalled: str


def standing(now: Revision) -> Standing:
    """Return what a head stands by whose newest revision this is."""
    order = newest_first(now.create_time)
    return Standing(
        order,
        largest_first(now.content.importance) + order,
        [*entered(now), *_replaced(now)],
        sorted({folded(each) for each in now.content.tags}),
        now.state is not State.FORGOTTEN,
        is_moved(now),
        _recalled(now),
    )


def replaced(agent_id: str) -> str:
    """Name the set of an agent's superseded memories that recall may look through (Q-3)."""
    return f"replaced/{agent_id}"


def recalled(agent_id: str) -> str:
    """Name the set of both, the live ones and those that were replaced, by record id."""
    return f"recalled/{agent_id}"


def _recalled(now: Revision) -> str:
    if now.kind is not Kind.MEMORY or now.trust not in TRUSTED:
        return ""
    return {State.ACTIVE: "l", State.SUPERSEDED: "r"}.get(now.state, "")


def _replaced(now: Revision) -> list[str]:
    return [replaced(now.agent_id)] if _recalled(now) == "r" else []


def is_found(now: Revision) -> bool:
    """Tell whether a head is one that recall may have to find some time."""
    return now.kind is Kind.MEMORY and now.state is not State.FORGOTTEN


@dataclass(frozen=True, slots=True)
class Entries:
    """What enters the sets.

    Attributes:
        sets: Of each set its name, and the first and the last of its members, counted from 1.
        members: Those of one agent together, as they are the same in the project's set.
    """

    sets: list[tuple[str, int, int]]
    members: list[bytes]


def entries(heads: Iterable[tuple[Revision, Standing]]) -> Entries:
    """Return what some heads enter.

    Raises:
        ValueError: A tag holds a surrogate.
    """
    order: dict[str, list[str]] = {}
    tagged: dict[str, list[str]] = {}
    others: dict[str, list[str]] = {}
    for now, stands in heads:
        if stands.is_listed:
            member = stands.order + now.record_id
            order.setdefault(now.agent_id, []).append(member)
            for tag in stands.tags:
                tagged.setdefault(now.agent_id, []).append(f"{tag}\0{member}")
        if stands.is_moved:
            others.setdefault(f"moved/{now.agent_id}", []).append(now.record_id)
        if stands.recalled:
            member = f"{now.record_id}\0{stands.recalled}"
            others.setdefault(recalled(now.agent_id), []).append(member)
        for name in stands.entered:
            others.setdefault(name, []).append(stands.place + now.record_id)
    sets: list[tuple[str, int, int]] = []
    members: list[bytes] = []

    def enter(name: str, given: list[str]) -> None:
        first = len(members) + 1
        members.extend(map(str.encode, given))
        sets.append((name, first, len(members)))

    for name, by_agent in (("order", order), ("tagged", tagged)):
        first = len(members) + 1
        for agent, given in by_agent.items():
            enter(f"{name}/{agent}", given)
        if by_agent:
            sets.append((name, first, len(members)))
    for name, given in others.items():
        enter(name, given)
    return Entries(sets, members)
