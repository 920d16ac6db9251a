"""The limits of contexts at their ends, and how requests narrow them. 004-90 to 93, 004-96."""

from collections.abc import Callable
from typing import Any

import pytest

from broker.context.limits import CANDIDATE_BYTES_MAX, ContextLimits, narrowed
from broker.domain.context import CompileContext, ContextBudget, ContextKind, OmissionCause
from broker.domain.context_errors import (
    ContextBudgetOverflowError,
    ContextCandidateOverflowError,
    LimitNotNarrowingError,
)
from providers.model import Record
from tests.fixtures.candidates import (
    SCOPE,
    always,
    compiled,
    decision,
    entered,
    left_out,
    memory,
    note,
)

BUDGET, ITEM_LIMIT = OmissionCause.BUDGET.value, OmissionCause.ITEM_LIMIT.value


def test_defaults() -> None:
    """004-90."""
    assert ContextLimits() == ContextLimits(candidates=1_000, items=20, tokens=4_000)


@pytest.mark.parametrize(
    ("name", "highest"), [("candidates", 10_000), ("items", 100), ("tokens", 16_000)]
)
def test_configured_limits_have_ranges(name: str, highest: int) -> None:
    """004-90."""
    for good in (1, highest):
        assert getattr(ContextLimits(**{name: good}), name) == good
    for bad in (0, -1, highest + 1):
        with pytest.raises(ValueError, match=f"{name} is 1-{highest}"):
            ContextLimits(**{name: bad})


def narrow(cap: int | None = None, **asked: Any) -> ContextLimits:
    return narrowed(ContextLimits(), CompileContext(scope=SCOPE, **asked), prompt_cap=cap)


def test_unset_limits_are_the_configured_ones() -> None:
    """004-91: an absent prompt cap bounds nothing, a high one neither."""
    assert narrow() == narrow(cap=4_001) == ContextLimits()


@pytest.mark.parametrize(
    ("field", "cap", "limit"),
    [("max_items", None, 20), ("max_tokens", None, 4_000), ("max_tokens", 700, 700)],
)
def test_a_request_can_only_narrow(field: str, cap: int | None, limit: int) -> None:
    """004-91: 1 and the limit are good; 0, below and above are refused with the limit."""
    for good in (1, limit - 1, limit):
        assert getattr(narrow(cap, **{field: good}), field.removeprefix("max_")) == good
    for bad in (-1, 0, limit + 1):
        with pytest.raises(LimitNotNarrowingError) as refusal:
            narrow(cap, **{field: bad})
        assert refusal.value.metadata == {"field": field, "limit": str(limit)}


def test_a_prompt_cap_bounds_tokens_and_not_items() -> None:
    """004-91."""
    assert narrow(cap=7) == ContextLimits(tokens=7)


@pytest.mark.parametrize("surplus", [-1, 0, 1])
def test_candidates_at_the_limit(surplus: int) -> None:
    """004-90: one too many is an error with both numbers, whatever a screen would keep out."""
    records = [memory(f"m{index}") for index in range(5 + surplus)]
    limits = ContextLimits(candidates=5)
    if surplus <= 0:
        assert len(entered(compiled(*records, limits=limits))) == 5 + surplus
        return
    with pytest.raises(ContextCandidateOverflowError) as refusal:
        compiled(*records, limits=limits, namespaces=("none",))
    assert refusal.value.metadata == {"what": "candidates", "limit": "5", "observed": "6"}


def test_too_many_bytes() -> None:
    """004-90: content that a provider cut off is no silent loss."""
    with pytest.raises(ContextCandidateOverflowError) as refusal:
        compiled(memory("m1"), truncated=True)
    assert refusal.value.metadata == {
        "what": "bytes",
        "limit": str(CANDIDATE_BYTES_MAX),
        "observed": str(CANDIDATE_BYTES_MAX + 1),
    }


@pytest.mark.parametrize("surplus", [-1, 0, 1])
def test_items_at_the_limit(surplus: int) -> None:
    """004-96: decisions and the session note do not count."""
    records = [memory(f"m{index}") for index in range(3 + surplus)]
    context = compiled(decision("d1"), note("s1"), *records, limits=ContextLimits(items=3))
    assert entered(context) == ["d1", *[f"m{i}" for i in range(min(3, 3 + surplus))], "s1"]
    assert left_out(context) == ([("m3", ITEM_LIMIT)] if surplus == 1 else [])


Make = Callable[..., Record]


def padded(make: Make, record_id: str, *others: Record, surplus: int = 0) -> tuple[Record, int]:
    """Return a record that makes the text fill its budget to the last code point, and that budget.

    ``surplus`` code points more or less follow once the budget is known.
    """
    for length in range(40, 44):
        context = compiled(*others, make(record_id, text="x" * length))
        used = context.budget.characters_used
        if used % 4 == 0:
            return make(record_id, text="x" * (length + surplus)), used // 4
    raise AssertionError


@pytest.mark.parametrize("surplus", [-1, 0, 1])
def test_decisions_at_the_budget(surplus: int) -> None:
    """004-92, 004-93, R11, R12: never left out; both numbers are told, four characters a token."""
    record, tokens = padded(decision, "d1", decision("d0"), surplus=surplus)
    limits = ContextLimits(tokens=tokens)
    if surplus <= 0:
        context = compiled(decision("d0"), record, limits=limits)
        assert context.budget == ContextBudget(
            tokens=tokens, items=20, characters_used=tokens * 4 + surplus
        )
        assert len(context.text or "") == tokens * 4 + surplus
        return
    with pytest.raises(ContextBudgetOverflowError) as refusal:
        compiled(decision("d0"), record, memory("m1"), limits=limits)
    assert refusal.value.metadata == {"limit": str(tokens * 4), "observed": str(tokens * 4 + 1)}


@pytest.mark.parametrize("make", [memory, note])
@pytest.mark.parametrize("surplus", [-1, 0, 1])
def test_the_last_record_at_the_budget(make: Make, surplus: int) -> None:
    """004-93, 004-96: a memory and a session note are left out, and told of."""
    record, tokens = padded(make, "x1", decision("d1"), memory("m1"), surplus=surplus)
    others = (decision("d1"), memory("m1", importance=1.0))
    context = compiled(record, *others, limits=ContextLimits(tokens=tokens))
    fits = surplus <= 0
    assert entered(context) == ["d1", "m1", "x1"][: 3 if fits else 2]
    assert left_out(context) == ([] if fits else [("x1", BUDGET)])
    counts = (context.omitted_memory_count, context.omitted_session_count)
    assert counts == ((0, 0) if fits else (0, 1) if make is note else (1, 0))


@pytest.mark.parametrize("surplus", [0, 1])
def test_the_budget_counts_what_is_escaped(surplus: int) -> None:
    """004-93: the text that is emitted is measured, not the one that was stored."""
    text = "<" * 10 + "x" * 40
    context = compiled(memory("m1", text=text))
    plain = compiled(memory("m1", text="x" * 50))
    assert context.budget.characters_used == plain.budget.characters_used + 50
    tokens = -(-context.budget.characters_used // 4) - surplus
    assert entered(compiled(memory("m1", text=text), limits=ContextLimits(tokens=tokens))) == (
        [] if surplus else ["m1"]
    )


LARGE, SMALL = "x" * 2_000, "x" * 100


def test_the_first_that_does_not_fit_ends_the_filling() -> None:
    """004-96, 004-L6, 000-36: what follows is left out whole, and told, also where it would fit."""
    records = [memory("m1"), memory("m2", text=LARGE, age=1), memory("m3", text=SMALL, age=2)]
    context = compiled(*records, limits=ContextLimits(tokens=400))
    assert entered(context) == ["m1"]
    assert left_out(context) == [("m2", BUDGET), ("m3", BUDGET)]


def test_oversized_memories_are_skipped_where_that_is_asked_for() -> None:
    """004-L6: smaller ones behind enter, and the item limit still holds."""
    records = [
        memory("m1", age=1, text=LARGE),
        memory("m2", age=2, text=SMALL),
        memory("m3", age=3, text=LARGE),
        memory("m4", age=4, text=SMALL),
        memory("m5", age=5, text=SMALL),
        memory("m6", age=6, text=LARGE),
    ]
    limits = ContextLimits(tokens=400, items=2)
    context = compiled(*records, limits=limits, skip_oversized=True)
    assert entered(context) == ["m2", "m4"]
    assert left_out(context) == [
        ("m1", BUDGET),
        ("m3", BUDGET),
        ("m5", ITEM_LIMIT),
        ("m6", ITEM_LIMIT),
    ]
    assert context.causes == (OmissionCause.ITEM_LIMIT, OmissionCause.BUDGET)


def test_the_session_note_enters_after_an_oversized_memory() -> None:
    """004-96."""
    context = compiled(memory("m1", text=LARGE), note("s1"), limits=ContextLimits(tokens=400))
    assert (entered(context), left_out(context)) == (["s1"], [("m1", BUDGET)])


def test_a_cause_is_told_once() -> None:
    """004-L5, 004-97."""
    records = [memory("m1", text=LARGE), memory("m2"), memory("m3", tags=("irrelevant",))]
    context = compiled(*records, note("s1", text=LARGE), limits=ContextLimits(tokens=400), query="")
    assert context.causes == (OmissionCause.RELEVANCE, OmissionCause.BUDGET)
    assert (context.omitted_memory_count, context.omitted_session_count) == (3, 1)
    assert context.omitted[-1].kind is ContextKind.SESSION_CONTEXT


def test_a_text_without_entries_tells_of_what_was_left_out() -> None:
    """004-97: unset only where nothing entered and nothing was left out."""
    context = compiled(memory("m1", text=LARGE), limits=ContextLimits(tokens=200))
    assert context.text is not None and context.items == ()
    assert context.budget.characters_used == len(context.text)
    empty = compiled(limits=ContextLimits(tokens=1))
    assert (empty.text, empty.budget.characters_used) == (None, 0)


def test_the_frame_alone_may_exceed_the_budget() -> None:
    """004-92, 004-93: a text above the budget is never given."""
    with pytest.raises(ContextBudgetOverflowError):
        compiled(memory("m1"), limits=ContextLimits(tokens=50))


def test_always_is_inside_the_same_limits() -> None:
    """000-06, 000-30: the newest first, up to the first that does not fit."""
    records = [memory(f"m{index}", facet=always(), age=index) for index in range(3)]
    context = compiled(*records, limits=ContextLimits(items=2), query="queue")
    assert (entered(context), left_out(context)) == (["m0", "m1"], [("m2", ITEM_LIMIT)])
    large = compiled(
        memory("m1", facet=always(), text=LARGE), limits=ContextLimits(tokens=400), query="queue"
    )
    assert left_out(large) == [("m1", BUDGET)]


def test_lists_end_at_a_thousand_and_counts_go_on() -> None:
    """004-97, 004-L2."""
    records = [memory(f"m{index:04}") for index in range(1_003)]
    records += [decision(f"d{index:04}", of_type="architecture") for index in range(1_002)]
    context = compiled(*records, limits=ContextLimits(candidates=3_000, items=1))
    assert len(context.omitted) == len(context.ignored) == 1_000
    assert (context.omitted_memory_count, context.ignored_decision_count) == (1_002, 1_002)
    assert context.omitted[0].record_id == "m0001"
    assert context.ignored[-1].record_id == "d0999"
