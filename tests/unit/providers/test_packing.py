"""Terms as one text: each is found as it is, and nothing else is."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from providers.entries import RECORD_TERMS_MAX
from providers.packing import counts_of, pack_terms

TERM = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\0"), min_size=1, max_size=8
)
# Few letters, so that terms begin each other and are each other's ends.
ALIKE = st.text("ab \u0301\u00e4\U0001f600", min_size=1, max_size=4)
# However busy the machine is.
PATIENT = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
COUNTS = st.dictionaries(TERM | ALIKE, st.integers(1, 2**31 - 1), max_size=30)


@PATIENT
@given(counts=COUNTS, others=st.lists(TERM | ALIKE, max_size=10))
def test_every_term_is_found_with_its_count(counts: dict[str, int], others: list[str]) -> None:
    """000-02: in the order asked for, and what is not there occurs no time."""
    asked = [*others, *counts]
    assert counts_of(pack_terms(counts), asked) == tuple(counts.get(term, 0) for term in asked)


@PATIENT
@given(counts=COUNTS)
def test_order_makes_no_other_text(counts: dict[str, int]) -> None:
    assert pack_terms(dict(reversed(counts.items()))) == pack_terms(counts)


def test_parts_and_neighbours_are_not_found() -> None:
    """000-02: a term means itself, also where it looks like what stands around another."""
    text = pack_terms({"java": 2, "a b": 3, "1": 4})
    asked = ("jav", "ava", "javax", "a", "b", "java\t2", "2", "\t", "\n", "", "1\t4\na b", "\ud800")
    assert counts_of(text, asked) == (0,) * len(asked)
    assert counts_of(text, ("1", "a b", "java")) == (4, 3, 2)
    assert counts_of(pack_terms({}), ("a", "")) == (0, 0)


def test_as_many_as_a_record_may_have() -> None:
    """004-83: first, last and all between."""
    counts = {f"t{n}": n + 1 for n in range(RECORD_TERMS_MAX)}
    assert counts_of(pack_terms(counts), [*counts]) == tuple(counts.values())


@pytest.mark.parametrize("count", ["", "\n", "x\n", "0\n", "-1\n", "1", "\u0661\n"])
def test_damage_is_told(count: str) -> None:
    """004-44: by an error that says nothing of the text."""
    with pytest.raises(ValueError, match="packed"):
        counts_of(f"a\t{count}", ("a",))
