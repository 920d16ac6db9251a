"""Looking for many literals at once finds what looking for each of them does."""

from hypothesis import given
from hypothesis import strategies as st

from broker.memory.literals import Literals
from broker.memory.phrases import MARKS, NEARS, SQUEEZED

ALPHABET = "ab_-.A1\u00e9"
LITERALS = st.lists(st.text(ALPHABET, min_size=1, max_size=4), max_size=6)


@given(LITERALS, st.text(ALPHABET, max_size=24))
def test_literals_are_found_as_one_by_one(literals: list[str], text: str) -> None:
    """002-03: small letters and digits alone, signs and capitals, in any mixture."""
    assert Literals(literals).stand_in(text) is any(each in text for each in literals)


def test_marks_are_found_squeezed() -> None:
    """002-28: a mark of each sort stands in a text, alone and in the middle."""
    for mark in ("<|im_", "[/inst]", "### system:", "```tool_use", "begin_untrusted_context"):
        squeezed = mark.translate(SQUEEZED)
        assert MARKS.stand_in(squeezed)
        assert MARKS.stand_in(f"a{squeezed}b")
        assert not MARKS.stand_in(squeezed[:-1])


def test_what_stands_near_is_never_ascii() -> None:
    """002-28: texts of ASCII are not looked through for words that stand near each other."""
    words = [word for near in NEARS for sort in (near.firsts, *near.others) for word in sort]
    assert words
    assert [word for word in words if word.isascii()] == []
