"""Recall by words: what matches, what is counted, how entries follow their heads."""

import unicodedata
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

from providers.capabilities import Capability
from providers.conformance import expect, specimens
from providers.conformance.declaration import StoreFact
from providers.conformance.harness import Bench
from providers.conformance.law import law
from providers.conformance.recall_steps import (
    Remembered,
    followed,
    found_by,
    matched,
    recalled,
    remembered,
)
from providers.conformance.steps import SECONDS, commit, committed, created, persist, trips
from providers.entries import RECORD_TERMS_MAX, TERM_LENGTH_MAX, RecallEntry, TermVector
from providers.errors import RecallScopeTooLargeError
from providers.model import Kind, State, Trust
from providers.recall import DRIVEN_MAX, MATCHES_MAX, QUERY_TERMS_MAX, Match, Matches, Superseded
from providers.requests import Committed, IdempotencyReused, Replayed, StaleRevision, Tombstoned

OWN = 20
OTHERS = 60


def _memory(record_id: str, words: str, **changes: Any) -> Remembered:
    return specimens.memory(record_id, **changes), specimens.entry(words)


@law("Q-4", "Q-7", capability=Capability.RECALL)
async def words_find_what_holds_one_of_them(bench: Bench) -> None:
    """000-02: any term is enough; counts come in the order asked, with the length."""
    project, provider = bench.project(), bench.provider
    await remembered(
        provider,
        project,
        _memory("r1", "java build java needs java"),
        _memory("r2", "build"),
        _memory("r3", "python"),
        _memory("r4", ""),
        (specimens.memory("r5"), specimens.entry("java", length=9)),
    )
    got = await recalled(provider, project, "build", "absent", "java")
    expect.equal(matched(got), ["r1", "r2", "r5"], "what matches")
    expect.equal(found_by(got, "r1"), ((1, 0, 3), 5), "how r1 matches")
    expect.equal(found_by(got, "r2"), ((1, 0, 0), 1), "how r2 matches")
    expect.equal(found_by(got, "r5"), ((0, 0, 1), 9), "how r5 matches")
    expect.equal(got.frequencies, (2, 0, 2), "the frequencies")
    expect.equal((got.documents, got.length_total, got.unindexed), (5, 16, 0), "the statistics")
    expect.equal(got.nearest, (), "what is nearest where no vector is asked for")
    nothing = await recalled(provider, project, "absent")
    expect.equal(
        (nothing.matches, nothing.frequencies), (Matches(), (0,)), "for a word nobody used"
    )


@law("Q-3", capability=Capability.RECALL)
async def statistics_are_of_the_memories_looked_through(bench: Bench) -> None:
    """002-23: counted is what is live, expired or not, and superseded where it is asked for."""
    project, provider = bench.project(), bench.provider
    over = specimens.facet(expire_time=specimens.START, namespace="elsewhere")
    states = {State.ACTIVE: 1, State.SUPERSEDED: 2, State.ARCHIVED: 4, State.REJECTED: 8}
    for number, (state, trust, kind) in enumerate(product(State, Trust, Kind)):
        length = 100 * states.get(state, 16)
        entry = specimens.entry("common", length=length)
        fields = {"state": state, "trust": trust, "kind": kind}
        made = specimens.memory(f"r{number}", **fields, facet=over if number % 2 else None)
        await remembered(provider, project, (made, entry))
    theirs = specimens.memory("theirs", agent_id="a2")
    await remembered(provider, project, (theirs, specimens.entry("common other")))
    await created(provider, project, *(specimens.memory(f"bare{n}") for n in range(3)))
    replaced = specimens.memory("bare-replaced", state=State.SUPERSEDED)
    await created(provider, project, replaced)
    for superseded, documents, length, bare in (
        (Superseded.NONE, 2, 200, 3),
        (Superseded.VALID, 4, 600, 4),
        (Superseded.ALL, 4, 600, 4),
    ):
        for asked in ({}, {"namespaces": frozenset({"nowhere"})}, {"importance_min": 2.0}):
            got = await recalled(
                provider, project, "common", "other", superseded=superseded, **asked
            )
            told = (got.documents, got.length_total, got.frequencies, got.unindexed)
            wanted = (documents, length, (documents, 0), bare)
            expect.equal(told, wanted, f"the statistics for {superseded}, {asked}")
    elsewhere = await recalled(provider, bench.project("p2"), "common")
    expect.equal((elsewhere.documents, elsewhere.unindexed), (0, 0), "of another project")


@law("Q-7", capability=Capability.RECALL)
async def terms_mean_themselves(bench: Bench) -> None:
    """000-02: no character of a term is a wildcard, a quote, an escape, or another one's."""
    project, provider = bench.project(), bench.provider
    terms = (
        *("%", "_", "a%", "a_b", "axb", "'", "''", '"', "\\", "\\\\", "c:\\x\\y", ":", "foo:*"),
        *("foo", "*", "&", "|", "!", "(", ")", "a & | !", "((", "{a,b}", "{}", "NULL", "null"),
        *("$1", "?", "[a]", "a", "A", "\u00e4", "a\u0308", "\u00df", "ss", "\U0001f600"),
        *("\u77e5\u8b58", "\u77e5", "\u0627\u0644", "\ud55c\uae00", "\ufb01", "fi", "-", "0", "00"),
        *(" ", "a ", "\u2000", "\u2028", "\U0010ffff", "x" * TERM_LENGTH_MAX),
        "\U0001f600" * TERM_LENGTH_MAX,
    )
    pairs = [
        (specimens.memory(f"r{n}"), RecallEntry(TermVector({term: n + 1}, n + 1)))
        for n, term in enumerate(terms)
    ]
    await remembered(provider, project, *pairs)
    for number, term in enumerate(terms):
        got = await recalled(provider, project, term)
        wanted = Matches.of([Match(f"r{number}", (number + 1,), number + 1)])
        expect.equal((got.matches, got.frequencies), (wanted, (1,)), f"what {term!r} finds")
    composed = unicodedata.normalize("NFC", "a\u0308")
    expect.that(composed in terms, "both spellings are among the terms")


@law("Q-4", "C-15", capability=Capability.RECALL)
async def many_terms_are_kept_and_asked_for(bench: Bench) -> None:
    """000-01: 2,048 terms of a record, and 64 of a query, each with its count."""
    project, provider = bench.project(), bench.provider
    counts = {f"term{n}": n % 7 + 1 for n in range(RECORD_TERMS_MAX)}
    length = sum(counts.values()) + 5
    large = RecallEntry(TermVector(counts, length))
    pair = _memory("small", "term7 other")
    await remembered(provider, project, (specimens.memory("large"), large), pair)
    asked = (*(f"term{n * 33}" for n in range(QUERY_TERMS_MAX - 2)), "other", "absent")
    got = await recalled(provider, project, *asked)
    wanted = (*(n * 33 % 7 + 1 for n in range(QUERY_TERMS_MAX - 2)), 0, 0)
    expect.equal(found_by(got, "large"), (wanted, length), "how the large one matches")
    expect.equal(found_by(got, "small")[0], (*([0] * (len(asked) - 2)), 1, 0), "and the small one")
    expect.equal(got.frequencies, (*([1] * (len(asked) - 1)), 0), "the frequencies")
    last = await recalled(provider, project, f"term{RECORD_TERMS_MAX - 1}")
    expect.equal(matched(last), ["large"], "what the last of its terms finds")


@law("Q-4", "Q-2", capability=Capability.RECALL)
async def common_words_drive_while_records_are_few(bench: Bench) -> None:
    """000-02: a word that all have still brings records, also where only filtered ones have it."""
    project, provider = bench.project(), bench.provider
    away = specimens.facet(namespace="away", invalidate_time=None)
    pairs = [_memory(f"r{n:02}", "common") for n in range(30)]
    pairs += [_memory("rare", "rare"), _memory("away", "common hidden", facet=away)]
    await remembered(provider, project, *pairs)
    got = await recalled(provider, project, "common", "rare", namespaces=frozenset({""}))
    expect.equal(matched(got), [*(f"r{n:02}" for n in range(30)), "rare"], "what matches")
    expect.equal(got.frequencies, (31, 1), "the frequencies")
    hidden = await recalled(provider, project, "hidden", namespaces=frozenset({""}))
    expect.equal((hidden.matches, hidden.frequencies), (Matches(), (1,)), "what is filtered")


@law("Q-4", "Q-5", capability=Capability.RECALL, bounded=False)
async def common_words_drive_no_more_where_records_are_many(bench: Bench) -> None:
    """000-02: rare words drive up to 2,000 together; the last 10,000 come of what matches."""
    project, provider = bench.project(), bench.provider
    for start in range(0, MATCHES_MAX + 3, 100):
        part = [_numbered(n) for n in range(start, min(start + 100, MATCHES_MAX + 3))]
        puts = [specimens.put(head, entry=entry) for head, entry in part]
        await committed(provider, specimens.write(project, *puts))
    got = await recalled(provider, project, "all")
    expect.equal(got.frequencies, (MATCHES_MAX + 3,), "how many hold the word")
    held_back = {"r00000", "r00001", "r00003"}
    everyone = {f"r{n:05}" for n in range(MATCHES_MAX + 3)}
    expect.equal(everyone - set(matched(got)), held_back, "what was not updated last")
    expect.equal(len(got.matches), MATCHES_MAX, "how many come")
    exact = await recalled(provider, project, "all", "some", "few")
    expect.equal(exact.frequencies, (MATCHES_MAX + 3, DRIVEN_MAX - 1, 1), "the frequencies")
    expect.equal(len(exact.matches), DRIVEN_MAX, "those with the rarer words")
    less = await recalled(provider, project, "two", "all", "some")
    expect.equal(matched(less), ["r00001", "r00002"], "those with the rarest word alone")


def _numbered(number: int) -> Remembered:
    """Give one ``few``, 1,999 others ``some``, two of these ``two``; two were updated at once."""
    words = ["all"]
    words += ["few"] if number == 0 else ["some"] if number < DRIVEN_MAX else []
    words += ["two"] if number in (1, 2) else []
    moment = specimens.START + timedelta(microseconds=2 if number in (2, 3) else number)
    return _memory(f"r{number:05}", " ".join(words), create_time=moment)


@law("Q-2", "Q-5", "G-1", "G-2", capability=Capability.RECALL)
async def recall_small_tenant_in_large_table(bench: Bench) -> None:
    """000-42, 002-21: beside hundreds of others', newer and better, all of one's own come."""
    project, provider = bench.project(), bench.provider
    later = specimens.START + timedelta(seconds=1)
    others = [
        *((project, agent_id) for agent_id in ("a", "a10", "A1", "a_1", "a%", "b1")),
        *((bench.project(name), "a1") for name in ("p2", "p", "P1", "p10")),
        *((bench.project(tenant_id=name), "a1") for name in ("t2", "t", "T1", "t10")),
    ]
    for where, agent_id in others:
        fields = {"agent_id": agent_id, "create_time": later}
        pairs = [_memory(f"{agent_id}-{n}", "java java", **fields) for n in range(OTHERS)]
        await remembered(provider, where, *pairs)
    mine = [_memory(f"mine{n:02}", "java build") for n in range(OWN)]
    await remembered(provider, project, *mine)
    got = await recalled(provider, project, "java", "build")
    expect.equal(matched(got), [f"mine{n:02}" for n in range(OWN)], "one's own")
    told = (got.documents, got.length_total, got.frequencies)
    expect.equal(told, (OWN, 2 * OWN, (OWN, OWN)), "the statistics of one's own")
    for where, agent_id in others:
        theirs = await recalled(provider, where, "java", agent_id=agent_id)
        expect.equal(len(theirs.matches), OTHERS, f"what {agent_id} has in {where.project_id}")


@law("Q-10", capability=Capability.RECALL)
async def entry_is_kept_while_only_the_state_changes(bench: Bench) -> None:
    """000-22: archived it is not found, active again it is, by the same words."""
    project, provider = bench.project(), bench.provider
    first, entry = _memory("r1", "java java build")
    await remembered(provider, project, (first, entry), _memory("r2", "build"))
    archived = await followed(provider, project, first, state=State.ARCHIVED)
    gone = await recalled(provider, project, "java", "build")
    expect.equal((matched(gone), gone.documents), (["r2"], 1), "while it is archived")
    again = await followed(provider, project, archived, state=State.ACTIVE)
    approved = await followed(provider, project, again, trust=Trust.APPROVED)
    got = await recalled(provider, project, "java", "build")
    expect.equal(found_by(got, "r1"), ((2, 1), 3), "how it matches again")
    expect.equal((got.documents, got.unindexed), (2, 0), "how many are counted")
    await followed(provider, project, approved, trust=Trust.REJECTED)
    expect.equal(matched(await recalled(provider, project, "build")), ["r2"], "once rejected")


@law("Q-10", capability=Capability.RECALL)
async def entry_is_replaced_with_the_head(bench: Bench) -> None:
    """001-11: after an edit the old words find nothing, and the new ones do."""
    project, provider = bench.project(), bench.provider
    first, entry = _memory("r1", "java java build")
    await remembered(provider, project, (first, entry))
    later = await followed(
        provider, project, first, text="Python.", entry=specimens.entry("python build")
    )
    got = await recalled(provider, project, "java", "python", "build")
    expect.equal(found_by(got, "r1"), ((0, 1, 1), 2), "how it matches")
    expect.equal(got.frequencies, (0, 1, 1), "the frequencies")
    expect.equal((got.documents, got.length_total), (1, 2), "the statistics")
    await followed(provider, project, later, text="", entry=specimens.entry())
    empty = await recalled(provider, project, "java", "python", "build")
    expect.equal(
        (empty.matches, empty.documents, empty.unindexed), (Matches(), 1, 0), "without a word"
    )


@law("Q-10", "C-4", "C-5", capability=Capability.RECALL)
async def refused_commits_put_no_entry(bench: Bench) -> None:
    """004-63: stale, replayed, reused and buried ones leave the entries as they are."""
    project, provider = bench.project(), bench.provider
    first, entry = _memory("r1", "java")
    good = specimens.write(project, specimens.put(first, entry=entry))
    buried = specimens.create(
        project, specimens.memory("r0"), tombstones=(specimens.tombstone("k"),)
    )
    await committed(provider, good, buried)
    other = specimens.entry("python")
    replay = replace(good, heads=(specimens.put(first, entry=other),))
    expect.equal(await commit(provider, replay), Replayed(good.receipt), "a replay")
    reused = replace(replay, receipt=replace(good.receipt, fingerprint=specimens.digest("else")))
    expect.equal(await commit(provider, reused), IdempotencyReused(), "a key used again")
    second = await followed(provider, project, first)
    wrong = specimens.after(first, "Python.")
    stale = specimens.write(project, specimens.put(wrong, over=first, entry=other))
    expect.equal(await commit(provider, stale), StaleRevision("r1", 2), "a stale revision")
    late = specimens.after(second, "Python.")
    dead = specimens.write(
        project, specimens.put(late, over=second, entry=other), must_be_absent=("k",)
    )
    expect.equal(await commit(provider, dead), Tombstoned("k"), "a buried key")
    new = specimens.put(specimens.memory("r2"), entry=other)
    both = specimens.write(project, new, specimens.put(wrong, over=first, entry=other))
    expect.kind(await commit(provider, both), StaleRevision, "a new head beside a stale one")
    got = await recalled(provider, project, "java", "python")
    expect.equal((matched(got), got.frequencies), (["r1"], (1, 0)), "what is found")
    expect.equal((got.documents, got.unindexed), (1, 1), "what is counted")


@law("Q-9", "C-1", capability=Capability.RECALL)
async def what_was_committed_is_recalled(bench: Bench) -> None:
    """004-63: as soon as a commit was answered, through another provider, all of it or nothing."""
    project, provider, writer = bench.project(), bench.provider, await bench.another()
    now = [specimens.memory(f"r{n}") for n in range(3)]
    await remembered(writer, project, *((each, specimens.entry("even")) for each in now))
    for turn in range(1, 8):
        later = [specimens.after(each, f"turn {turn}") for each in now]
        entry = specimens.entry(("even", "odd")[turn % 2])
        puts = [
            specimens.put(new, over=old, entry=entry) for new, old in zip(later, now, strict=True)
        ]
        expect.equal(await commit(writer, specimens.write(project, *puts)), Committed(), "an edit")
        got = await recalled(provider, project, "even", "odd")
        wanted = ((3, 0), (0, 3))[turn % 2]
        told = (matched(got), got.frequencies)
        expect.equal(told, (["r0", "r1", "r2"], wanted), f"turn {turn}")
        now = later


@law("Q-9", capability=Capability.RECALL, facts=(StoreFact.COUNTED,))
async def recall_is_one_round_trip(bench: Bench) -> None:
    """004-68: one trip, whatever is asked and found."""
    project, provider = bench.project(), bench.provider
    await remembered(provider, project, *(_memory(f"r{n}", f"java word{n}") for n in range(40)))
    await recalled(provider, project, "java")
    many = tuple(f"word{n}" for n in range(QUERY_TERMS_MAX))
    cases: tuple[tuple[tuple[str, ...], dict[str, Any], int], ...] = (
        (("java",), {}, 40),
        (("absent",), {}, 0),
        (many, {}, 40),
        (("java",), {"agent_id": "nobody"}, 0),
        (("java",), {"superseded": Superseded.ALL, "tags": ("build",)}, 40),
    )
    for terms, asked, wanted in cases:
        before = bench.round_trips()
        got = await recalled(provider, project, *terms, **asked)
        trips(bench, before, "recall")
        expect.equal(len(got.matches), wanted, f"what {len(terms)} terms find")


@law("Q-10", "C-7", capability=Capability.RECALL, facts=(StoreFact.DURABLE,))
async def entries_survive_a_restart(bench: Bench) -> None:
    """003-11: what was remembered is recalled after a crash, with the same statistics."""
    project, provider = bench.project(), bench.provider
    first, entry = _memory("r1", "java java build")
    await remembered(provider, project, (first, entry), _memory("r2", "build"))
    await created(provider, project, specimens.memory("bare"))
    before = await recalled(provider, project, "java", "build")
    expect.equal((matched(before), before.unindexed), (["r1", "r2"], 1), "before the restart")
    await bench.restart()
    await persist(lambda: provider.ready(timeout=SECONDS))
    after = await persist(lambda: recalled(provider, project, "java", "build"))
    expect.equal(matched(after), matched(before), "after the restart")
    expect.equal(found_by(after, "r1"), ((2, 1), 3), "how it matches after the restart")
    bare = replace(after, matches=Matches())
    expect.equal(bare, replace(before, matches=Matches()), "the statistics after the restart")


@law("Q-8", capability=Capability.RECALL, bounded=True)
async def too_many_memories_are_told(bench: Bench) -> None:
    """004-84: at the bound all are looked through, past it a refusal says so; others count not."""
    project, provider = bench.project(), bench.provider
    most = expect.some(bench.declaration.recall_records_max, "the bound")
    half = most // 2
    pairs = [_memory(f"r{n}", "java") for n in range(half)]
    await remembered(provider, project, *pairs)
    bare = [specimens.memory(f"r{n}") for n in range(half, most)]
    await created(provider, project, *bare)
    others = [
        specimens.memory("theirs", agent_id="a2"),
        specimens.memory("old", state=State.SUPERSEDED),
        specimens.memory("archived", state=State.ARCHIVED),
        specimens.memory("rejected", trust=Trust.REJECTED),
        specimens.decision("decision"),
    ]
    await created(provider, project, *others)
    got = await recalled(provider, project, "java")
    told = (len(got.matches), got.documents, got.unindexed)
    expect.equal(told, (half, half, most - half), "at the bound")
    for superseded in (Superseded.VALID, Superseded.ALL):
        call = recalled(provider, project, "java", superseded=superseded)
        refused = await expect.raises(call, RecallScopeTooLargeError, what="with superseded ones")
        expect.equal((refused.limit, refused.observed), (most, most + 1), "what is told")
    await created(provider, project, specimens.memory("one more"))
    for spaces in (frozenset[str](), frozenset({"nowhere"})):
        call = recalled(provider, project, "java", namespaces=spaces)
        refused = await expect.raises(call, RecallScopeTooLargeError, what="past the bound")
        expect.that(refused.limit == most < refused.observed, "the limit and what is beyond it")
    theirs = await recalled(provider, project, "java", agent_id="a2")
    expect.equal(theirs.unindexed, 1, "of an agent that has few")
