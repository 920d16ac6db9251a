"""Takes memories in, one after the other: what stands against each, and what follows from it."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from broker.domain.errors import TombstonedError
from broker.domain.memories import Action, Outcome, Remembered, Signal
from broker.domain.records import Stamp, created
from broker.memory.changes import gave_way, reinforced
from broker.memory.decide import DUPLICATE_COSINE, Found, Scored, Verdict, decide
from broker.memory.holding import is_refuted
from broker.memory.keys import belief_key, belief_key_of, content_key_of
from broker.memory.shelf import Shelf, with_entry
from providers.entries import RecallEntry, Vector
from providers.model import Content, Kind, MemoryFacet, Record, RevisionRef
from providers.requests import KeyHolder

SCORE_DIGITS: Final = 4
"""Digits of a score that a receipt keeps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One memory to take in, checked, stamped and admitted.

    ``terms`` are the distinct terms of its text, ``content_key`` is the key of it.
    """

    agent_id: str
    run_id: str
    content: Content
    facet: MemoryFacet
    terms: frozenset[str]
    content_key: str
    entry: RecallEntry

    @property
    def belief_key(self) -> str | None:
        """The key of its subject and belief type, where it has both."""
        subject, belief_type = self.facet.subject, self.facet.belief_type
        if subject is None or belief_type is None:
            return None
        return belief_key(self.agent_id, self.facet.namespace, subject, belief_type)


@dataclass(frozen=True, slots=True)
class Likeness:
    """How like an item a memory is that was there: by vector, else by words."""

    record_id: str
    cosine: float | None
    jaccard: float

    @property
    def may_be_same(self) -> bool:
        """Whether it may say the very same: only then are whole texts worth a look."""
        return self.jaccard == 1.0 if self.cosine is None else self.cosine >= DUPLICATE_COSINE


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """How duplicates are looked for. ``declared``: by the tombstone alone."""

    declared: bool = False
    duplicate_cosine: float = DUPLICATE_COSINE
    reinforces: bool = True


@dataclass(slots=True)
class Intake:
    """Takes the memories of one request in, over a shelf."""

    shelf: Shelf
    keys: Mapping[str, KeyHolder]
    rules: Rules
    stamp: Stamp
    likeness: Callable[[Item, "Earlier"], Likeness]
    _earlier: list["Earlier"] = field(default_factory=list)
    _results: list[tuple[Verdict, str, bool]] = field(default_factory=list)

    def take(self, item: Item, like: Sequence[Likeness]) -> None:
        """Decide about one memory and put what follows on the shelf.

        Raises:
            TombstonedError: its text was forgotten, or rejected as untrue or changed.
        """
        self._check_tombstone(item)
        verdict = self._verdict(item, like)
        if verdict.action is Action.SKIPPED and verdict.target is not None:
            record_id = verdict.target.current.record_id
            told = verdict.reinforces and self.rules.reinforces
            if told:
                self.shelf.put(reinforced(self.shelf.head(record_id), stamp=self.stamp))
            self._results.append((verdict, record_id, told))
            return
        record_id = self._create(item, verdict.target)
        self._results.append((verdict, record_id, False))

    def _check_tombstone(self, item: Item) -> None:
        holder = self.keys.get(item.content_key)
        if holder is not None and holder.tombstone_kind is not None:
            raise TombstonedError("the content was forgotten and may not come back")
        record = self.shelf.holder(item.content_key)
        if record is not None and is_refuted(record.current):
            raise TombstonedError("the content was rejected and may not come back")

    def _verdict(self, item: Item, like: Sequence[Likeness]) -> Verdict:
        if self.rules.declared:
            return Verdict(action=Action.CREATED)
        all_like = [*like, *(self.likeness(item, each) for each in self._earlier)]
        found = Found(
            same=self._live_holder(item.content_key, _content_key) or self._twin(item, all_like),
            belief=self._live_holder(item.belief_key, _belief_key),
            nearest=self._best((each.record_id, each.cosine) for each in all_like),
            likest=self._best(
                (each.record_id, each.jaccard) for each in all_like if each.cosine is None
            ),
        )
        return decide(
            found,
            source_type=item.facet.source_type,
            memory_kind=item.facet.memory_kind,
            duplicate_cosine=self.rules.duplicate_cosine,
        )

    def _live_holder(
        self, key: str | None, key_of: Callable[[Record], str | None]
    ) -> Record | None:
        record = None if key is None else self.shelf.holder(key)
        if record is None or key_of(record) != key:
            return None
        return self.shelf.live(record.current.record_id)

    def _twin(self, item: Item, like: Iterable[Likeness]) -> Record | None:
        """Return a live memory of the same text that does not hold its key."""
        live = (self.shelf.live(each.record_id) for each in like if each.may_be_same)
        return next(
            (each for each in live if each and _content_key(each) == item.content_key), None
        )

    def _best(self, scores: Iterable[tuple[str, float | None]]) -> Scored | None:
        live = [
            Scored(record, score)
            for record_id, score in scores
            if score is not None and (record := self.shelf.live(record_id)) is not None
        ]
        return max(live, key=lambda each: (each.score, each.record.current.record_id), default=None)

    def _create(self, item: Item, target: Record | None) -> str:
        put = with_entry(
            created(
                kind=Kind.MEMORY,
                agent_id=item.agent_id,
                run_id=item.run_id,
                content=item.content,
                facet=item.facet,
                stamp=self.stamp,
            ),
            item.entry,
        )
        first = put.record.current
        self.shelf.put(put)
        if target is not None:
            self._retire(target, first.record_id)
        self._claim(item.content_key, first.record_id, _content_key)
        self.shelf.prove(item.content_key)
        if item.belief_key is not None:
            self._claim(item.belief_key, first.record_id, _belief_key)
        self._earlier.append(Earlier(first.record_id, item.terms, item.entry.vector))
        return first.record_id

    def _claim(self, key: str, record_id: str, key_of: Callable[[Record], str | None]) -> None:
        """Take a key unless a live record that it fits holds it, which only DECLARED can meet."""
        if self._live_holder(key, key_of) is None:
            self.shelf.take(key, record_id)

    def _retire(self, target: Record, by: str) -> None:
        head = self.shelf.head(target.current.record_id)
        replacement = self.shelf.head(by).current
        for key in (_content_key(head), _belief_key(head)):
            if key is not None:
                self.shelf.leave(key, head.current.record_id)
        self.shelf.put(gave_way(head, replacement, stamp=self.stamp))

    # -------------------- what came of it

    def refs(self) -> tuple[RevisionRef, ...]:
        """Name what each memory left, in order, and then what gave way."""
        left = [self.shelf.ref(record_id) for _, record_id, _ in self._results]
        return (*left, *(self.shelf.ref(each) for each in self._gone()))

    def outcome(self) -> Outcome:
        """Return what a receipt keeps of the reply."""
        kept: dict[str, str | bool | int | float] = {}
        gone = self._gone()
        for place, (verdict, _, told) in enumerate(self._results):
            kept[f"a{place}"] = verdict.action.value
            if verdict.signal is not None:
                kept[f"g{place}"] = verdict.signal.value
            if verdict.score is not None:
                kept[f"x{place}"] = round(verdict.score, SCORE_DIGITS)
            if told:
                kept[f"r{place}"] = True
            if verdict.action is Action.SUPERSEDED and verdict.target is not None:
                index = gone.index(verdict.target.current.record_id)
                kept[f"o{place}"] = len(self._results) + index
        return kept

    def _gone(self) -> list[str]:
        return [
            verdict.target.current.record_id
            for verdict, _, _ in self._results
            if verdict.action is Action.SUPERSEDED and verdict.target is not None
        ]


@dataclass(frozen=True, slots=True)
class Earlier:
    """A memory that the same request has created."""

    record_id: str
    terms: frozenset[str]
    vector: Vector | None


def remembered(
    refs: Sequence[RevisionRef], heads: Sequence[Record], outcome: Outcome, count: int
) -> tuple[Remembered, ...]:
    """Return what became of each memory, from a receipt and the heads it names, in order."""
    return tuple(_remembered(refs, heads, outcome, place) for place in range(count))


def _remembered(
    refs: Sequence[RevisionRef], heads: Sequence[Record], outcome: Outcome, place: int
) -> Remembered:
    signal = outcome.get(f"g{place}")
    score = outcome.get(f"x{place}")
    gone = outcome.get(f"o{place}")
    return Remembered(
        record=heads[place],
        action=Action(str(outcome[f"a{place}"])),
        reinforced=bool(outcome.get(f"r{place}", False)),
        signal=None if signal is None else Signal(str(signal)),
        score=None if score is None else float(score),
        superseded_record_id=None if gone is None else refs[int(gone)].record_id,
    )


def _content_key(record: Record) -> str:
    return content_key_of(record.current)


def _belief_key(record: Record) -> str | None:
    return belief_key_of(record.current)
