"""Search for text: where it is looked for, what counts as the same, and that it means itself."""

import unicodedata
from datetime import timedelta
from typing import Any

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.steps import committed, created, search, searched
from providers.interface import IMemoryProvider
from providers.model import ProjectKey
from providers.requests import SearchPage

CONTENT_MAX = 40_000
MANY = 700
RARE = {"quokka": range(7, MANY, 150), "\u77e5\u8b58": range(11, MANY, 200)}
OF_ANOTHER = range(3, MANY, 4)

# A text, and one that it would find too if a character of it meant more than itself.
LITERAL = {
    "100%": "100 of 100",
    "50%off": "50 twice off",
    "snake_case": "snakeXcase",
    "_": "underscore",
    "c:\\new": "c:new",
    "\\%": "%",
    "\\": "/",
    "it's": "its",
    "'; DROP": "; DROP",
    '"quoted"': "quoted",
    ".*": "anything",
    "a.c": "abc",
    "[a-z]": "m",
    "(x|y)": "xy",
    "^begin$": "begin",
    "$1": "1",
    "what?": "whatx",
    "a+b": "aab",
    "{0}": "0",
    "a  b": "a b",
    "tab\there": "tab here",
    "line\nbreak": "line break",
    "\u2028": "\n",
    "&amp;": "&",
    "C++": "C",
    "AND": "&",
    "foo* OR bar": "foo bar",
    "\U0001f44d\U0001f3fd": "\U0001f44d",
    "\U0001f469\u200d\U0001f467": "\U0001f469\U0001f467",
    "\u77e5\u8b58": "\u77e5\u306e\u8b58",
    "\u8bb0\u5fc6": "\u8bb0 \u5fc6",
    "\uc9c0\uc2dd": "\uc9c1\uc2dd",
    "\u30ca\u30ec": "\u30ca\u30f3\u30ec",
    "\u306f": "\u307b",
    "\U00020bb7\u91ce": "\u5409\u91ce",
    "x": "y",
    "\u00e9t\u00e9": "ete",
    "\u2000": "\u2001",
}
SAME = (
    ("Stra\u00dfe", "STRASSE"),
    ("\u1e9e", "ss"),
    ("\u039f\u0394\u039f\u03a3", "\u03bf\u03b4\u03bf\u03c2"),
    ("\u03c3", "\u03c2"),
    ("pro\ufb01le", "PROFILE"),
    ("\u0130stanbul", "i\u0307STANBUL"),
    ("\uff21\uff42\uff23", "\uff41\uff22\uff43"),
    ("\u00c4rger", "\u00e4RGER"),
    ("\u0414\u041e\u041c", "\u0434\u043e\u043c"),
    ("\u01c5", "\u01c6"),
    ("\u13a0\uab71", "\uab70\u13a1"),
    ("caf\u00e9", "cafe\u0301"),
    ("CAFE\u0301", "caf\u00e9"),
    ("\uc9c0\uc2dd", unicodedata.normalize("NFD", "\uc9c0\uc2dd")),
    ("\u30ac", "\u30ab\u3099"),
    ("q\u0323\u0307", "q\u0307\u0323"),
    ("\u212bngstr\u00f6m", "a\u030angstro\u0308m"),
    ("\u1fb7", "\u0391\u0342\u0345"),
    ("\u2126", "\u03c9"),
)
DIFFERENT = (
    ("\u00e9", "e"),
    ("e\u0301", "e"),
    ("e\u0301", "\u0301"),
    ("e", "\u00e9"),
    ("\u0131", "i"),
    ("\u0130", "\u0131"),
    ("\uff21", "a"),
    ("\u00b2", "2"),
    ("\u2460", "1"),
    ("\uff76", "\u30ab"),
    ("\u30ac", "\u30ab"),
    ("\uc9c1", "\uc9c0"),
    ("\u00a0", " "),
    ("x\u200by", "xy"),
    ("\u0430", "a"),
)


async def _found(provider: IMemoryProvider, project: ProjectKey, **asked: Any) -> list[str]:
    records = await searched(provider, project, **asked)
    return sorted(each.current.record_id for each in records)


@law("S-3", capability=Capability.SEARCH)
async def every_character_means_itself(bench: Bench) -> None:
    """004-67: wildcards, escapes, quotes, operators and scripts without spaces are plain text."""
    project, provider = bench.project(), bench.provider
    texts = [f"\u3042{each}\u3042" for pair in LITERAL.items() for each in pair]
    records = [
        specimens.memory(f"r{n}", content=specimens.content(text, title=None, tags=()))
        for n, text in enumerate(texts)
    ]
    await created(provider, project, *records)
    for number, (text, decoy) in enumerate(LITERAL.items()):
        found = await _found(provider, project, text=text)
        expect.that(f"r{2 * number}" in found, f"{text!r} is found where it stands")
        expect.that(f"r{2 * number + 1}" not in found, f"{text!r} is not found in {decoy!r}")
        whole = await _found(provider, project, agent_id=None, text=texts[2 * number])
        expect.equal(whole, [f"r{2 * number}"], f"what is found of {texts[2 * number]!r}")


@law("S-3", capability=Capability.SEARCH)
async def case_and_composition_do_not_count(bench: Bench) -> None:
    """004-67: full case folding in no language, composed and decomposed alike, and nothing more."""
    project, provider = bench.project(), bench.provider
    pairs = (*((*pair, True) for pair in SAME), *((*pair, False) for pair in DIFFERENT))
    for number, (stored, text, same) in enumerate(pairs):
        agent_id = f"a{number}"
        said = specimens.content(f";.{stored};", title=None, tags=(), type=";")
        tagged = specimens.content(";", title=None, tags=("*", stored), type=";")
        for name, content in (("said", said), ("tagged", tagged)):
            record = specimens.memory(f"{name}{number}", agent_id=agent_id, content=content)
            await committed(provider, specimens.create(project, record))
        itself = await _found(provider, project, agent_id=agent_id, text=stored)
        expect.equal(len(itself), 2, f"{stored!r} finds itself")
        for asked, wanted in (
            ({"text": text}, [f"said{number}", f"tagged{number}"]),
            ({"tags": (text,)}, [f"tagged{number}"]),
            ({"tags": (text, "*")}, [f"tagged{number}"]),
        ):
            found = await _found(provider, project, agent_id=agent_id, **asked)
            expect.equal(found, wanted if same else [], f"{stored!r} asked by {asked}")


@law("S-3", capability=Capability.SEARCH)
async def text_is_looked_for_in_four_fields(bench: Bench) -> None:
    """004-67: type, title, content and each tag, each by itself; in nothing else."""
    project, provider = bench.project(), bench.provider
    blank = specimens.content("plain", title="plain", type="plain", tags=("plain",))
    fields: dict[str, dict[str, Any]] = {
        "type": {"type": "a quokka b"},
        "title": {"title": "a quokka b"},
        "text": {"content": "a quokka b"},
        "tag": {"tags": ("first", "a quokka b", "last")},
        "rationale": {"rationale": "a quokka b"},
    }
    records = [
        specimens.memory(name, content=specimens.content(**{**_as_fields(blank), **changes}))
        for name, changes in fields.items()
    ]
    elsewhere = specimens.memory(
        "quokka",
        content=blank,
        reason="a quokka b",
        source_session_id="quokka",
        facet=specimens.facet(subject="a quokka b"),
    )
    split = specimens.content("okka quo", type="quo", title="kka", tags=("kka quo", "kka"))
    across = specimens.memory("across", content=split)
    await committed(provider, specimens.create(project, *records, elsewhere, across))
    for text in ("quokka", "QUOKKA", "uokk", "kk", "a quokka b"):
        wanted = ["across"] * (text == "kk") + ["tag", "text", "title", "type"]
        expect.equal(await _found(provider, project, text=text), sorted(wanted), repr(text))
    for text in ("quokka plain", "plainplain", "plain\nplain", "quokka\u2000plain"):
        expect.equal(await _found(provider, project, text=text), [], f"{text!r}, of two fields")
    everything = sorted([*fields, "quokka", "across"])
    expect.equal(await _found(provider, project, text=""), everything, "an empty text")


def _as_fields(content: Any) -> dict[str, Any]:
    return {name: getattr(content, name) for name in ("content", "title", "type", "tags")}


@law("S-3", capability=Capability.SEARCH)
async def tags_are_equal_as_a_whole(bench: Bench) -> None:
    """004-66: every tag asked for is there, whole; a title or a text that says it is none."""
    project, provider = bench.project(), bench.provider
    tagged: dict[str, tuple[str, ...]] = {
        "both": ("build", "java"),
        "upper": ("JAVA", "Build"),
        "one": ("build",),
        "longer": ("builds", "rebuild", "build java"),
        "odd": ("b_ild", "100%", "a\\b", "it's"),
        "none": (),
    }
    records = [
        specimens.memory(name, "build", content=specimens.content("build", title="build", tags=t))
        for name, t in tagged.items()
    ]
    await committed(provider, specimens.create(project, *records))
    for tags, wanted in (
        (("build",), ["both", "one", "upper"]),
        (("BUILD", "java"), ["both", "upper"]),
        (("java", "build", "java"), ["both", "upper"]),
        (("build java",), ["longer"]),
        (("b_ild",), ["odd"]),
        (("100%", "a\\b", "IT'S"), ["odd"]),
        (("build", "absent"), []),
        (("buil",), []),
        (("%",), []),
        (("",), []),
        ((), sorted(tagged)),
    ):
        found = await _found(provider, project, tags=tags)
        expect.equal(found, wanted, f"what has {tags}")
        with_text = await _found(provider, project, tags=tags, text="BUILD", agent_id=None)
        expect.equal(with_text, wanted, f"what has {tags} and a text")


@law("S-3", capability=Capability.SEARCH)
async def search_follows_the_head(bench: Bench) -> None:
    """004-67: the newest revision is what is searched, from the moment it is committed."""
    project, provider = bench.project(), bench.provider
    first = specimens.memory("r1", "an old quokka")
    await committed(provider, specimens.create(project, first))
    expect.equal(await _found(provider, project, text="old quokka"), ["r1"], "at first")
    second = specimens.after(first, content=specimens.content("a new wombat", tags=("fresh",)))
    await committed(provider, specimens.write(project, specimens.put(second, over=first)))
    reader = await bench.another()
    for asked, wanted in (
        ({"text": "old quokka"}, []),
        ({"text": "kk"}, []),
        ({"tags": ("build",)}, []),
        ({"text": "new wombat"}, ["r1"]),
        ({"text": "wo"}, ["r1"]),
        ({"tags": ("fresh",)}, ["r1"]),
    ):
        for each in (provider, reader):
            expect.equal(await _found(each, project, **asked), wanted, f"after it, {asked}")
    found = await search(provider, project, text="wombat")
    expect.equal(found, SearchPage((second,), more=False), "the head, whole")
    brought = specimens.history("r2", 3)
    past = tuple(each.current for each in brought[:-1])
    await committed(provider, specimens.create(project, brought[-1], history=past))
    expect.equal(await _found(provider, project, text="text 3"), ["r2"], "a head with its past")
    expect.equal(await _found(provider, project, text="text 2"), [], "its past")


@law("S-3", capability=Capability.SEARCH)
async def text_is_found_however_long(bench: Bench) -> None:
    """004-67: at the end of the longest content, and as long as the broker lets it be."""
    project, provider = bench.project(), bench.provider
    end = "the end of \u77e5\u8b58"
    for n, unit in enumerate(("word ", "\u9b31", "\u00e9", "\U0001f600")):
        content = (unit * CONTENT_MAX)[: CONTENT_MAX - len(end)] + end
        await committed(provider, specimens.create(project, specimens.memory(f"r{n}", content)))
        for text in ("\u8b58", "OF \u77e5\u8b58", content[-256:], content[-4096:].upper()):
            found = await _found(provider, project, text=text)
            expect.that(f"r{n}" in found, f"the end of {unit!r}, {len(text)} characters")
            missed = await _found(provider, project, text=text + "?")
            expect.equal(missed, [], "a text that goes on")


@law("S-1", "S-2", "S-3", capability=Capability.SEARCH)
async def old_and_rare_text_is_found_among_many(bench: Bench) -> None:
    """004-66, 004-67: however many newer heads do not fit, those that do are on the page."""
    project, provider = bench.project(), bench.provider
    records = [
        specimens.memory(
            f"r{n:03}",
            f"record {n}" + "".join(f" {text}" for text, of in RARE.items() if n in of),
            agent_id="a2" if n in OF_ANOTHER else "a1",
            create_time=specimens.START - timedelta(seconds=n),
        )
        for n in range(MANY)
    ]
    await created(provider, project, *records)
    for text, of in RARE.items():
        for agent_id in ("a1", "a2", None):
            wanted = [
                each
                for n, each in enumerate(records)
                if n in of and agent_id in (None, each.current.agent_id)
            ]
            for limit in (1, 2, 50):
                asked = {"agent_id": agent_id, "text": text.upper()}
                found = await searched(provider, project, limit=limit, **asked)
                expect.equal(found, wanted, f"{text} of {agent_id}, {limit} at a time")
    last = await search(provider, project, text="record 697")
    expect.equal(last.records, (records[697],), "the only one, and nearly the oldest")


@law("G-1", "G-10", capability=Capability.SEARCH)
async def unstorable_text_finds_nothing(bench: Bench) -> None:
    """004-56: a text or a name that can never have been stored is absent like any other."""
    project, provider = bench.project(), bench.provider
    await committed(provider, specimens.create(project, specimens.memory("r1")))
    expect.equal(await _found(provider, project, text="Java"), ["r1"], "before")
    for odd in ("Java\0", "\0", "\ud800", "Java\udfff"):
        for asked in ({"text": odd}, {"tags": (odd,)}, {"tags": ("build", odd)}, {"agent_id": odd}):
            expect.equal(await _found(provider, project, **asked), [], f"{asked}")
