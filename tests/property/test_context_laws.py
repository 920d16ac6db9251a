"""Laws that every context keeps, whatever the candidates. 004-92 to 004-97, 004-L6."""

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from broker.context.limits import ContextLimits
from broker.context.render import rendered_again
from broker.domain.context import Compiled, ContextKind, OmissionCause
from broker.domain.context_errors import ContextBudgetOverflowError
from providers.model import DeliveryPolicy, MemoryFacet, Record, RevisionRef, Trust
from tests.fixtures.candidates import compiled, decision, entered, foreign, memory, note

CASES = settings(max_examples=150, deadline=None)

WORDS = ("queue", "worker", "retry", "elephant", "the")
TEXTS = st.one_of(
    st.lists(st.sampled_from((*WORDS, "<<<", "\u202e", "[INST]")), max_size=40).map(" ".join),
    st.text(st.characters(exclude_categories=["Cs"]), max_size=200),
)
TAGS = st.lists(st.sampled_from((*WORDS, "irrelevant", "queue worker")), max_size=3).map(tuple)
FACETS = st.one_of(
    st.none(),
    st.builds(MemoryFacet, delivery_policy=st.sampled_from(DeliveryPolicy), flagged=st.booleans()),
)


@st.composite
def candidates(draw: st.DrawFn, decisions_max: int = 3) -> list[Record]:
    """Draw what a provider might give."""
    numbers = iter(range(1_000))

    def said(**more: Any) -> dict[str, Any]:
        return {
            "text": draw(TEXTS),
            "age": draw(st.integers(0, 3)),
            "facet": draw(FACETS),
            "importance": draw(st.sampled_from((0.0, 0.25, 0.4, 0.5, 0.7, 0.9))),
        } | more

    records = [
        decision(f"r{next(numbers)}", **said()) for _ in range(draw(st.integers(0, decisions_max)))
    ]
    for _ in range(draw(st.integers(0, 8))):
        name, tags = f"r{next(numbers)}", draw(TAGS)
        if draw(st.booleans()):
            trust = draw(st.sampled_from((Trust.PENDING, Trust.APPROVED)))
            records.append(memory(name, **said(tags=tags, trust=trust)))
        else:
            records.append(foreign(name, **said(tags=(*tags, "cross-team"))))
    records += [note(f"r{next(numbers)}", **said()) for _ in range(draw(st.integers(0, 2)))]
    return records


ASKED = st.fixed_dictionaries(
    {
        "query": st.one_of(st.none(), st.just(""), st.lists(st.sampled_from(WORDS)).map(" ".join)),
        "include_pending": st.sampled_from((None, True, False)),
        "skip_oversized": st.booleans(),
    }
)
LIMITS = st.builds(ContextLimits, tokens=st.integers(60, 1_000), items=st.integers(1, 6))


def tried(records: list[Record], limits: ContextLimits, asked: dict[str, Any]) -> Compiled | None:
    """Return the context; ``None`` where the decisions exceed the budget."""
    try:
        return compiled(*records, limits=limits, **asked)
    except ContextBudgetOverflowError:
        return None


@CASES
@given(candidates(), LIMITS, ASKED)
def test_the_budget_holds_and_every_record_is_accounted_for(
    records: list[Record], limits: ContextLimits, asked: dict[str, Any]
) -> None:
    """004-93, 004-97."""
    context = tried(records, limits, asked)
    if context is None:
        return
    text = context.text or ""
    assert len(text) == context.budget.characters_used <= limits.tokens * 4
    assert len(entered(context, ContextKind.MEMORY)) <= limits.items
    for item in context.items:
        where = item.record_id if item.kind is not ContextKind.SESSION_CONTEXT else item.revision_id
        assert f'"{where}"' in text
    told = entered(context) + [item.record_id for item in context.omitted]
    assert len(told) == len(set(told))
    assert set(told) <= {record.current.record_id for record in records}
    counts = context.omitted_memory_count + context.omitted_session_count
    assert counts == len(context.omitted)
    assert set(context.causes) == {item.cause for item in context.omitted}


@CASES
@given(st.data(), candidates(), LIMITS, ASKED)
def test_equal_input_gives_equal_bytes_in_any_order(
    data: st.DataObject, records: list[Record], limits: ContextLimits, asked: dict[str, Any]
) -> None:
    """004-97, 004-100: also from what a log keeps."""
    context = tried(records, limits, asked)
    assert tried(data.draw(st.permutations(records)), limits, asked) == context
    if context is not None and context.text is not None:
        revisions = {
            RevisionRef(record.current.record_id, record.current.revision): record.current
            for record in records
        }
        again = rendered_again(context.render_version, context.items, revisions, agent_id="agent-1")
        assert again == context.text


@CASES
@given(candidates(), LIMITS, ASKED, st.integers(1, 400))
def test_what_ranks_lower_never_removes_what_ranks_higher(
    records: list[Record], limits: ContextLimits, asked: dict[str, Any], length: int
) -> None:
    """004-95, 004-96: memories that entered stay, and so do the decisions.

    The newcomer is the last of all by every key. The session note comes after memories, and may
    lose its place to one.
    """
    before = tried(records, limits, asked)
    newcomer = memory("zzz", text="x" * length, importance=0.0, age=99)
    after = tried([*records, newcomer], limits, asked)
    if before is None or after is None:
        assert before is None or before.text is None  # only the frame itself may not fit
        return
    for kind in (ContextKind.DECISION, ContextKind.MEMORY):
        kept = entered(after, kind)
        assert [each for each in kept if each != "zzz"] == entered(before, kind)


@CASES
@given(candidates(decisions_max=0), LIMITS, ASKED)
def test_the_best_memories_enter(
    records: list[Record], limits: ContextLimits, asked: dict[str, Any]
) -> None:
    """004-96: without skipping, what entered is the beginning of the order that has no limits."""
    whole = tried(records, ContextLimits(tokens=16_000, items=100), asked)
    cut = tried(records, limits, asked | {"skip_oversized": False})
    if whole is None or cut is None:
        return
    order = entered(whole, ContextKind.MEMORY)
    taken = entered(cut, ContextKind.MEMORY)
    assert order[: len(taken)] == taken
    lost = [i.record_id for i in cut.omitted if i.cause is not OmissionCause.RELEVANCE]
    assert [each for each in lost if each in order] == order[len(taken) :]
