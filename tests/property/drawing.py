"""What the property tests draw: small vocabularies, so that things meet, and odd characters."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from enum import Enum, auto
from functools import partial
from typing import Any, TypeVar
from unicodedata import normalize

from hypothesis import strategies as st

from providers.conformance import specimens
from providers.model import Content, Kind, MemoryFacet, State, Trust

T = TypeVar("T")

RECORDS = ("r1", "R1", "r10", "r_1", "r-1", "r.1")
AGENTS = ("a1", "A1", "a10", "a_1")
KEYS = ("k1", "K1", "k10", "k_1", "k%")
RUNS = ("run-1", "run-10")
ACTORS = (specimens.ACTOR, specimens.OTHER_ACTOR)
PROJECTS = ("p1", "p10")

# Case pairs, wildcards, escapes, quotes, scripts, characters that fold into several, marks.
ALPHABET = (
    "aAbBsS%_\\'\"* \u00df\u017fiI\u0130\u0131\u0301\u00e9\u00c9\u0307f\ufb01\u03a3\u03c2\u03c3"
    "\uff21\u77e5\u8b58\uc9c0\u1109\U0001f600\u2000\u2001"
)
SPELLINGS: tuple[Callable[[str], str], ...] = (
    str,
    str.swapcase,
    str.upper,
    str.casefold,
    partial(normalize, "NFD"),
    partial(normalize, "NFC"),
)
TEXT = st.text(ALPHABET, max_size=6)
NEEDLE = st.one_of(st.text(ALPHABET, max_size=3), st.sampled_from(["abs", "sss", "assb"]))
# Long enough to have trigrams now and then.
BODY = st.one_of(TEXT, st.text("aAbsS\u00df", min_size=3, max_size=9))
SHARED = st.sampled_from(["cross-team", "Cross-Team", "cro\u00df-team", "cross-teams"])
TAGS = st.lists(TEXT | SHARED, max_size=3).map(tuple)
IMPORTANCE = st.sampled_from([0.0, 0.25, 0.1 + 0.2, 0.5, 0.9, 1.0])
MOMENT = st.integers(0, 4).map(lambda n: specimens.START + timedelta(microseconds=n))

CONTENT = st.builds(
    Content,
    type=TEXT,
    title=st.none() | TEXT,
    content=BODY,
    rationale=st.none() | TEXT,
    importance=IMPORTANCE,
    tags=TAGS,
)
FACET = st.one_of(
    st.none(),
    st.builds(MemoryFacet, subject=st.none() | TEXT, metadata=st.none() | st.just({"a": [1, "1"]})),
)


class Step(Enum):
    """How the revision a change expects stands to the current one."""

    FITS = auto()
    NONE = auto()
    BEHIND = auto()
    AHEAD = auto()


def often(usual: T, *others: T) -> st.SearchStrategy[T]:
    """Draw the usual value in nine of ten cases."""
    return st.integers(0, 9).flatmap(
        lambda n: st.sampled_from(others) if n == 9 else st.just(usual)
    )


@dataclass(frozen=True)
class Change:
    """What is to happen to one head.

    ``astray``: the link names another revision. ``past``: how many revisions come along.
    """

    record_id: str
    step: Step
    astray: bool
    past: int
    agent_id: str
    kind: Kind
    state: State
    trust: Trust
    content: Content
    facet: MemoryFacet | None
    run_id: str | None
    superseded_by: str | None
    moment: Any


CHANGE = st.builds(
    Change,
    record_id=st.sampled_from(RECORDS),
    step=often(Step.FITS, *Step),
    astray=often(False, True),
    past=often(0, 1, 2),
    agent_id=often(*AGENTS),
    kind=st.sampled_from(Kind),
    state=often(State.ACTIVE, *State),
    trust=st.sampled_from(Trust),
    content=CONTENT,
    facet=FACET,
    run_id=st.none() | st.sampled_from(RUNS),
    superseded_by=st.none() | st.sampled_from(RECORDS),
    moment=MOMENT,
)


@dataclass(frozen=True)
class Rest:
    """What else is in a write set. Numbers are distances from what a counter stands at.

    ``held_by``: a claim names this record and not the one that holds the key.
    """

    actor: str
    reused_key: int | None
    request: str
    keys: tuple[tuple[str, str], ...]
    holder: str
    held_by: str | None
    graph: int | None
    transfer: int | None
    effect: int | None
    run_id: str


ACTION = often("claim", "release", "release", "absent", "bury")


def distinct(keys: list[tuple[str, str]]) -> tuple[tuple[str, str], ...]:
    """Name each key once."""
    return tuple(dict(keys).items())


REST = st.builds(
    Rest,
    actor=st.sampled_from(ACTORS),
    reused_key=often(None, 0, 1, 2),
    request=st.sampled_from(["one", "another"]),
    keys=st.just(()) | st.lists(st.tuples(st.sampled_from(KEYS), ACTION), max_size=2).map(distinct),
    holder=st.sampled_from(RECORDS),
    held_by=often(None, *RECORDS),
    graph=st.none() | often(0, 1),
    transfer=st.none() | often(0, 1),
    effect=st.none() | often(0, 1),
    run_id=st.sampled_from(RUNS),
)


def subset(values: Any) -> st.SearchStrategy[frozenset[Any]]:
    """Draw a set that is often empty."""
    return st.just(frozenset()) | st.frozensets(st.sampled_from(values), min_size=1, max_size=4)


FILTER: dict[str, st.SearchStrategy[Any]] = {
    "text": NEEDLE,
    "kinds": subset(Kind),
    "states": subset(State),
    "trusts": subset(Trust),
    "tags": st.lists(TEXT, max_size=2).map(tuple),
    "importance_min": IMPORTANCE,
    "importance_max": IMPORTANCE,
    "updated_from": MOMENT,
    "updated_before": MOMENT,
}
FILTERS = st.lists(st.sampled_from(sorted(FILTER)), max_size=3, unique=True).flatmap(
    lambda names: st.fixed_dictionaries({each: FILTER[each] for each in names})
)

# A bound far from every sum: how a store writes a facet in JSON, and so its bytes, is its own.
SIZED = st.sampled_from([{}, {"brief": True}, {"bytes_max": 1}, {"bytes_max": 1_000_000}])
"""How large a page may be."""
