"""The precedence of clause C-3, refusal by refusal."""

from dataclasses import replace
from itertools import pairwise

import pytest

from providers.conformance import specimens
from providers.model import Claim, ProjectKey, WriteSet
from providers.refusal import Facts, expected_revision_id, judge
from providers.requests import (
    AlreadyExists,
    ClaimTaken,
    CommitOutcome,
    Contended,
    GraphConflict,
    IdempotencyReused,
    KeyHolder,
    Replayed,
    StaleRevision,
    Tombstoned,
)

PROJECT = ProjectKey("t1", "p1")
OLD = specimens.memory("old")
NEW = specimens.memory("new")
EFFECT = specimens.effect(3)
WRITE = specimens.write(
    PROJECT,
    specimens.put(specimens.after(OLD), over=OLD),
    specimens.put(NEW),
    claims=(Claim("k1", "new"), Claim("k2", "new", held_by="old")),
    must_be_absent=("k3",),
    graph_expected=4,
    transfer_expected=2,
    effect=EFFECT,
)
CLEAR = Facts(
    receipt=None,
    holders={"k2": KeyHolder("old", None)},
    counters={"graph": 4, "transfer": 2, "stream/run-1": 2},
    heads={"old": (1, OLD.current.revision_id)},
    revision_ids=frozenset(),
    has_effect=False,
)
TAKEN = {"k1": KeyHolder("other", None), "k2": KeyHolder("old", None)}
# In order of precedence: what is in the way, and what the commit is told.
IN_THE_WAY: list[tuple[dict[str, object], CommitOutcome]] = [
    ({"receipt": WRITE.receipt}, Replayed(WRITE.receipt)),
    ({"holders": TAKEN | {"k3": KeyHolder(None, "forgotten")}}, Tombstoned("k3")),
    ({"heads": {"old": (1, "x"), "new": (1, "y")}}, AlreadyExists("new")),
    ({"revision_ids": frozenset({NEW.current.revision_id})}, AlreadyExists("new")),
    ({"has_effect": True}, AlreadyExists(EFFECT.receipt_id)),
    ({"holders": TAKEN}, ClaimTaken("k1", "other")),
    ({"counters": {"graph": 5, "transfer": 2, "stream/run-1": 9}}, GraphConflict()),
    ({"counters": {"graph": 4, "transfer": 2}}, Contended()),
    ({"heads": {"old": (2, "z")}}, StaleRevision("old", 2)),
]


def test_nothing_in_the_way() -> None:
    assert judge(WRITE, CLEAR) is None


@pytest.mark.parametrize(("changes", "told"), IN_THE_WAY)
def test_each_alone(changes: dict[str, object], told: CommitOutcome) -> None:
    assert judge(WRITE, replace(CLEAR, **changes)) == told  # type: ignore[arg-type]


@pytest.mark.parametrize(("first", "second"), list(pairwise(IN_THE_WAY)))
def test_the_earlier_of_two(
    first: tuple[dict[str, object], CommitOutcome], second: tuple[dict[str, object], CommitOutcome]
) -> None:
    both = second[0] | first[0]
    assert judge(WRITE, replace(CLEAR, **both)) == first[1]  # type: ignore[arg-type]


@pytest.mark.parametrize("other", [{"method": "other"}, {"fingerprint": "0" * 64}])
def test_a_receipt_of_another_request(other: dict[str, str]) -> None:
    kept = replace(WRITE.receipt, **other)  # type: ignore[arg-type]
    assert judge(WRITE, replace(CLEAR, receipt=kept)) == IdempotencyReused()


@pytest.mark.parametrize(
    ("holders", "told"),
    [
        ({}, ClaimTaken("k2", None)),
        ({"k2": KeyHolder("new", None)}, ClaimTaken("k2", "new")),
        ({"k2": KeyHolder(None, "forgotten")}, Tombstoned("k2")),
    ],
)
def test_a_claim_that_is_to_be_handed_on(
    holders: dict[str, KeyHolder], told: CommitOutcome
) -> None:
    assert judge(WRITE, replace(CLEAR, holders=holders)) == told


@pytest.mark.parametrize(
    ("heads", "told"),
    [
        ({}, StaleRevision("old", 0)),
        ({"old": (7, "x")}, StaleRevision("old", 7)),
        ({"old": (1, "another")}, StaleRevision("old", 1)),
    ],
)
def test_a_head_that_is_not_the_expected_one(
    heads: dict[str, tuple[int, str]], told: CommitOutcome
) -> None:
    assert judge(WRITE, replace(CLEAR, heads=heads)) == told


def test_what_history_links_to_is_expected() -> None:
    chain = specimens.history("r1", 4)
    write = WriteSet(
        project=PROJECT,
        receipt=specimens.receipt(),
        heads=(specimens.put(chain[3], over=1),),
        history=(chain[2].current, chain[1].current),
    )
    assert expected_revision_id(write, write.heads[0]) == chain[0].current.revision_id
