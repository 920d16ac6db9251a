"""What is measured: write sets of every sort, as small as usual and as large as they may be."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from providers.conformance import specimens
from providers.entries import DIMENSION_MAX, RECORD_TERMS_MAX, RecallEntry
from providers.model import (
    ChangeKind,
    Claim,
    ClaimRelease,
    Content,
    ProjectKey,
    Record,
    State,
    WriteSet,
)
from tests.fixtures.filling import entry, fresh_name, record, said

PROJECT = ProjectKey("tenant-a", "atlas")
RAINBOW, CJK, CONTROL = "\U0001f308", "\u77e5", "\u0001"
MOST = (RECORD_TERMS_MAX, DIMENSION_MAX)
BATCH, AGENT = 12, "a0"
# 004-83
RECORDS, REVISIONS, BYTES = 25, 500, 1_048_576

Steps = tuple[WriteSet, ...]
"""Write sets in turn; the last is measured, the ones before prepare it."""


def keys(made: Record) -> dict[str, Any]:
    """Claim for a record what a memory claims: its text, and what it is about."""
    name = made.current.record_id
    return {"claims": (Claim(f"content/{name}", name), Claim(f"subject/{name}", name))}


def created(content: Content | None = None, found_by: RecallEntry | None = None) -> Steps:
    made = record(content)
    return (specimens.write(PROJECT, specimens.put(made, entry=found_by), **keys(made)),)


def reworded(before: RecallEntry, now: RecallEntry) -> Steps:
    """Change what a memory is found by."""
    made = record()
    first, later = (
        specimens.write(PROJECT, put)
        for put in (
            specimens.put(made, entry=before),
            specimens.put(specimens.after(made), over=made, entry=now),
        )
    )
    return first, later


def updated(content: Content | None = None) -> Steps:
    """Change the text and so the key that is claimed for it."""
    made = record(content)
    name = made.current.record_id
    changed = specimens.after(made, content=replace(made.current.content, tags=("new", "tags")))
    write = specimens.write(
        PROJECT,
        specimens.put(changed, over=made),
        claims=(Claim(f"new/{name}", name), Claim(f"subject/{name}", name, name)),
        releases=(ClaimRelease(f"content/{name}", name),),
    )
    return specimens.create(PROJECT, made, **keys(made)), write


def superseded(graph: Iterator[int]) -> Steps:
    """Replace one decision by another."""
    old = specimens.decision(fresh_name("decision"), content=said())
    new = specimens.decision(fresh_name("decision"), content=said())
    by = new.current.record_id
    write = specimens.write(
        PROJECT,
        specimens.put(specimens.superseded(old, by), over=old),
        specimens.put(specimens.after(new), over=new),
        graph_expected=next(graph),
    )
    return specimens.create(PROJECT, old, new), write


def promoted(stream: Iterator[int], content: Content | None = None) -> Steps:
    """Make a decision of a proposal, with an effect to deliver and two keys to claim."""
    asked = specimens.proposal(fresh_name("proposal"), content=content or said())
    made = specimens.decision(fresh_name("decision"), content=content or said())
    decided = specimens.after(
        asked, state=State.PROMOTED, promoted_decision_id=made.current.record_id
    )
    write = specimens.write(
        PROJECT,
        specimens.put(decided, over=asked),
        specimens.put(made),
        effect=specimens.effect(next(stream) + 1),
        **keys(made),
    )
    return specimens.create(PROJECT, asked), write


def batch(content: Content) -> Steps:
    """Remember twelve things of one agent at once."""
    made = [record(content, agent_id=AGENT) for _ in range(BATCH)]
    claims = tuple(claim for each in made for claim in keys(each)["claims"])
    return (specimens.create(PROJECT, *made, claims=claims),)


def reinforced(content: Content) -> Steps:
    """Remember twelve things at once that are known: each gets a revision."""
    made = [record(content, agent_id=AGENT) for _ in range(BATCH)]
    again = [specimens.after(each, change_kind=ChangeKind.REINFORCED) for each in made]
    puts = [specimens.put(new, over=old) for new, old in zip(again, made, strict=True)]
    return specimens.create(PROJECT, *made), specimens.write(PROJECT, *puts)


def forgotten() -> Steps:
    """Forget a record and bury the key of its text."""
    made = record()
    name = made.current.record_id
    gone = specimens.after(made, "", state=State.FORGOTTEN)
    write = specimens.write(
        PROJECT,
        specimens.put(gone, over=made),
        releases=(ClaimRelease(f"subject/{name}", name),),
        tombstones=(specimens.tombstone(f"content/{name}"),),
    )
    return specimens.create(PROJECT, made, **keys(made)), write


def imported(char: str, records: int = RECORDS) -> Steps:
    """Bring a bundle of full size."""
    text = char * ((BYTES // REVISIONS - 16) // len(char.encode()))
    chains = []
    for _ in range(records):
        chain = [record(said(text, tags=3))]
        while len(chain) < REVISIONS // records:
            chain.append(specimens.after(chain[-1]))
        chains.append(chain)
    past = tuple(each.current for chain in chains for each in chain[:-1])
    claims = tuple(claim for chain in chains for claim in keys(chain[-1])["claims"])
    puts = [specimens.put(chain[-1]) for chain in chains]
    return (specimens.write(PROJECT, *puts, history=past, claims=claims, transfer_expected=None),)


def cases(graph: Iterator[int], stream: Iterator[int]) -> Mapping[str, Callable[[], Steps]]:
    """Return what is measured, by name; an import's name says so.

    Args:
        graph: Gives the decision graph's counter as each write set that advances it will meet it.
        stream: Gives that of the effects of ``run-1``.
    """
    return {
        "create": created,
        "create, 32 tags of 64": lambda: created(said(tags=32, length=64)),
        "create, found by 60 words": lambda: created(found_by=entry()),
        "create, found by 2,048 words": lambda: created(found_by=entry(*MOST)),
        "create, found by 2,048 of 64": lambda: created(found_by=entry(*MOST, 64)),
        "update, found by 2,048 words": lambda: reworded(entry(*MOST), entry(*MOST)),
        "create, 40,000 ASCII": lambda: created(said("x" * 40_000)),
        "create, 40,000 CJK": lambda: created(said(CJK * 40_000)),
        "create, 40,000 emoji": lambda: created(said(RAINBOW * 40_000)),
        "create, 40,000 control": lambda: created(said(CONTROL * 40_000)),
        "update": updated,
        "update, 32 tags of 64": lambda: updated(said(tags=32, length=64)),
        "update, 40,000 emoji": lambda: updated(said(RAINBOW * 40_000)),
        "supersede": lambda: superseded(graph),
        "promote": lambda: promoted(stream),
        "promote, 40,000 emoji": lambda: promoted(stream, said(RAINBOW * 40_000)),
        "forget": forgotten,
        "batch of 12": lambda: batch(said()),
        "batch of 12, 16 tags of 64": lambda: batch(said(tags=16, length=64)),
        "batch of 12, 7,900 emoji": lambda: batch(said(RAINBOW * 7_900)),
        "batch of 12, 5,200 control": lambda: batch(said(CONTROL * 5_200)),
        "reinforce 12": lambda: reinforced(said()),
        "reinforce 12, 16 tags of 64": lambda: reinforced(said(tags=16, length=64)),
        "reinforce 12, 7,700 emoji, 16 tags of 64": lambda: reinforced(
            said(RAINBOW * 7_700, tags=16, length=64)
        ),
        "import, 25 x 20 ASCII": lambda: imported("x"),
        "import, 25 x 20 CJK": lambda: imported(CJK),
        "import, 25 x 20 emoji": lambda: imported(RAINBOW),
        "import, 25 x 20 control": lambda: imported(CONTROL),
        "import, 1 x 500 ASCII": lambda: imported("x", 1),
    }
