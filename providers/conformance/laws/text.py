"""Text, numbers and times come back as they were given."""

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import commit, committed, head, load, nothing_of, stored
from providers.errors import WriteSetInvalidError
from providers.model import Claim, ReceiptKey, Record, WriteSet

CONTENT_MAX = 40_000
TEXTS = {
    "empty": "",
    "spaces": "  two before, two after  ",
    "lines": "a\nb\r\nc\rd\tq\n",
    "controls": "".join(map(chr, [*range(1, 32), *range(127, 160)])),
    "separators": "a\u2028b\u2029c\u0085d\u00a0e\u200bf\ufeffg",
    "combining": "e\u0301 is not \u00e9; \u1e9b\u0323 and \u0fb2\u0f71\u0f80 stay apart",
    "emoji": "\U0001f469\u200d\U0001f469\u200d\U0001f467 \U0001f1e9\U0001f1ea \U0001f44d\U0001f3fd",
    "cjk": "知識ブローカー 지식 \U00020bb7野家 \u9b31",
    "directions": "\u202eabc\u202c \u0627\u0644\u0639\u0631\u0628\u064a\u0629 \u05d0",
    "no characters": "\ufffe\uffff\U0010ffff\ufffd\ue000",
    "escapes": r"\u0000 \x00 \n \\ %s {0} ${x} $1 :name '' \"",
    "markup": '\'; DROP TABLE records; -- <b>&amp;</b> {"a": [1, null]}',
}
FLOATS = (0.0, 1.0, 0.1 + 0.2, 1 / 3, 2**-52, 0.1, 0.7, 1 - 2**-53, 5e-324)
TIMES = (
    datetime(2026, 1, 1, tzinfo=UTC),
    datetime(2026, 12, 31, 23, 59, 59, 999999, tzinfo=UTC),
    datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC),
    datetime(1999, 1, 1, 0, 0, 0, 123456, tzinfo=UTC),
)


async def _come_back(bench: Bench, *records: Record) -> None:
    project = bench.project()
    await committed(bench.provider, *(specimens.create(project, each) for each in records))
    await stored(bench.provider, project, *records)


@law("G-10", capability=Capability.WRITE)
async def text_comes_back_exactly(bench: Bench) -> None:
    """004-48: whatever script, control or separator, in every field that holds text."""
    await _come_back(
        bench,
        *(
            specimens.memory(
                f"r{number}",
                content=specimens.content(
                    text, title=text, rationale=text, type=f"type {text}", tags=(text, "last")
                ),
                reason=text,
                source_session_id=f"session {number}",
            )
            for number, text in enumerate(TEXTS.values())
        ),
    )


@law("G-10", capability=Capability.WRITE)
async def longest_text_comes_back_exactly(bench: Bench) -> None:
    """004-48: 40,000 code points, however many bytes each takes."""
    units = ("a", "é", "\u9b31", "\U0001f600", "\u2028", "e\u0301", "\x01", '"', "\\")
    await _come_back(
        bench,
        *(
            specimens.memory(f"r{number}", (unit * CONTENT_MAX)[:CONTENT_MAX])
            for number, unit in enumerate(units)
        ),
    )


@law("G-10", capability=Capability.WRITE)
async def absent_and_empty_stay_apart(bench: Bench) -> None:
    """004-48: no title is not an empty title, and no facet is not an empty facet."""
    said = specimens.content(title=None, rationale=None, tags=())
    await _come_back(
        bench,
        specimens.memory("r1", content=said, facet=None, reason=None),
        specimens.memory("r2", content=replace(said, title="", rationale=""), reason=""),
        specimens.memory("r3", facet=specimens.empty_facet()),
        specimens.memory("r4", facet=replace(specimens.empty_facet(), metadata={})),
    )


@law("G-10", capability=Capability.WRITE)
async def tags_keep_their_order(bench: Bench) -> None:
    """004-50: the broker sorts tags; a store keeps them as they come."""
    orders = (("b", "a", "C"), ("C", "b", "a"), ("ä", "z", "Z", "a,b", "a b", "null", '"'))
    await _come_back(
        bench,
        *(
            specimens.memory(f"r{number}", content=specimens.content(tags=tags))
            for number, tags in enumerate(orders)
        ),
    )


@law("G-10", "C-8", capability=Capability.WRITE)
async def numbers_and_times_are_exact(bench: Bench) -> None:
    """004-48: floats bit by bit, times to the microsecond and in UTC."""
    project = bench.project()
    records = [
        specimens.memory(
            f"f{number}",
            content=specimens.content(importance=value),
            facet=specimens.facet(confidence=value),
        )
        for number, value in enumerate(FLOATS)
    ]
    for number, moment in enumerate(TIMES):
        first = specimens.memory(f"t{number}", create_time=moment)
        records.append(first)
    await _come_back(bench, *records)
    for each in records:
        record_id = each.current.record_id
        found = expect.some(await head(bench.provider, project, record_id), record_id)
        expect.equal(found.create_time.utcoffset(), timedelta(0), "the offset from UTC")
        expect.equal(
            found.current.content.importance.hex(),
            each.current.content.importance.hex(),
            "the importance",
        )
    moved = specimens.after(records[-1], "later")
    await committed(
        bench.provider, specimens.write(project, specimens.put(moved, over=records[-1]))
    )
    await stored(bench.provider, project, moved)


@law("G-10", "C-8", capability=Capability.WRITE)
async def facet_comes_back_whole(bench: Bench) -> None:
    """000-05, 000-08: every field of a facet, and metadata of any JSON shape."""
    metadata: dict[str, object] = {
        "text": TEXTS["emoji"],
        "": "an empty name",
        "Z": None,
        "a": [True, False, None, 1, -1, 2**53 - 1, 0.5, 0.1 + 0.2, "1", [], {}],
        "nested": {"deep": {"deeper": [{"x": [1, [2, [3]]]}]}},
    }
    facet = specimens.facet(metadata=metadata)
    await _come_back(bench, specimens.memory("r1", facet=facet))
    found = expect.some(await head(bench.provider, bench.project(), "r1"), "the head")
    kept = expect.some(expect.some(found.current.facet, "the facet").metadata, "the metadata")
    expect.equal(
        json.dumps(kept, sort_keys=True, default=dict),
        json.dumps(metadata, sort_keys=True),
        "the metadata, types included",
    )


@law("G-10", "C-5", capability=Capability.WRITE)
async def nul_and_lone_surrogate_refused(bench: Bench) -> None:
    """004-48: text that some store cannot keep is refused by all, wherever it stands."""
    project = bench.project()
    for unfit in ("a\0b", "\ud800", "a\udfffb", "\udc00\ud800"):
        for place, write in _spoiled(
            project_write=specimens.create(project, specimens.memory("r1")), unfit=unfit
        ).items():
            await expect.raises(
                commit(bench.provider, write), WriteSetInvalidError, what=f"{unfit!r} as {place}"
            )
    await nothing_of(bench.provider, specimens.create(project, specimens.memory("r1")))
    left = await load(bench.provider, project, keys=("k1",), transfer=True)
    expect.equal((dict(left.keys), left.transfer), ({}, 0), "what refused commits left")
    await _come_back(bench, specimens.memory("r1", "\U0001f600 is a pair and no surrogate"))


def _spoiled(*, project_write: WriteSet, unfit: str) -> dict[str, WriteSet]:
    """Put unfit text in one place after another."""
    write = project_write
    project = write.project

    def said(**changes: Any) -> WriteSet:
        return specimens.create(
            project, specimens.memory("r1", content=specimens.content(**changes))
        )

    def revised(**changes: Any) -> WriteSet:
        return specimens.create(project, specimens.memory("r1", **changes))

    return {
        "content": said(text=unfit),
        "title": said(title=unfit),
        "rationale": said(rationale=unfit),
        "type": said(type=unfit),
        "tag": said(tags=("a", unfit)),
        "agent": revised(agent_id=unfit),
        "reason": revised(reason=unfit),
        "session": revised(source_session_id=unfit),
        "revision id": revised(revision_id=unfit),
        "facet": revised(facet=specimens.facet(subject=unfit)),
        "metadata": revised(facet=specimens.facet(metadata={"a": [{"b": unfit}]})),
        "metadata name": revised(facet=specimens.facet(metadata={unfit: 1})),
        "record id": specimens.create(project, specimens.memory(unfit)),
        "key": specimens.keyed(write, key=unfit),
        "method": specimens.keyed(write, method=unfit),
        "outcome": specimens.keyed(write, outcome={"a": unfit}),
        "claim": replace(write, claims=(Claim(unfit, "r1"),)),
        "absence": replace(write, must_be_absent=(unfit,)),
        "tombstone": replace(write, tombstones=(specimens.tombstone("k1", unfit),)),
        "effect": replace(write, effect=replace(specimens.effect(1), run_id=unfit)),
        "project": replace(write, project=replace(project, project_id=unfit)),
    }


@law("G-1", "L-3", capability=Capability.READ)
async def unstorable_ids_find_nothing(bench: Bench) -> None:
    """004-56: an id that can never have been stored is absent like any other."""
    project = bench.project()
    record = specimens.memory("r1")
    await committed(bench.provider, specimens.create(project, record))
    for odd in ("r1\0", "\0", "", "\ud800", "r1\n", "r" * 5000):
        found = await load(
            bench.provider,
            project,
            "r1",
            odd,
            keys=(odd,),
            receipt=ReceiptKey(specimens.ACTOR, odd),
            chain_from=odd,
            stream_run_id=odd,
        )
        expect.equal(dict(found.heads), {"r1": record}, f"heads beside {odd[:9]!r}")
        expect.equal(
            (dict(found.keys), found.receipt, found.chain, found.stream),
            ({}, None, (), 0),
            f"what {odd[:9]!r} finds",
        )
