"""Leaked reasoning is taken out, and nothing else is touched."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker.memory import reasoning
from broker.memory.reasoning import stripped
from tests.unit.memory.growth import GROWTH_MAX, growth, loose_repeats, patterns_of

ROWS = (
    ("<think>hm</think>The sky is blue.", "The sky is blue."),
    ("<thinking>hm</thinking> x", "x"),
    ("<scratch_pad>hm</scratch_pad>x", "x"),
    ("<scratchpad>hm</scratchpad>x", "x"),
    ("<reasoning>hm</reasoning>x", "x"),
    ("<THINK>hm</Think>x", "x"),
    ('<think mode="long" n=1>hm</think>x', "x"),
    ("<think\n>hm</think\t>x", "x"),
    ("a\n<think>hm\nhm</think>\nb", "a\n\nb"),
    ("a<think>1</think>b<reasoning>2</reasoning>c", "abc"),
    # nested
    ("<think>1<scratchpad>2</scratchpad>3</think>x", "x"),
    ("<think>1<think>2</think>3</think>x", "x"),
    ("<think>1<reasoning>2</think>x", "x"),
    ("<scratch_pad>1</scratchpad>x", "x"),
    # a closing tag of another name closes nothing
    ("<think>1</reasoning>2</think>x", "x"),
    # not closed: to the end
    ("x <think>hm", "x"),
    ("x <think>1<think>2</think>3", "x"),
    # closes nothing: goes by itself
    ("1</think>x", "1x"),
    ("x</reasoning></think>", "x"),
    # both in one
    ("x<think/>y<reasoning />z", "xyz"),
    # nothing is left
    ("<think>hm</think>", ""),
    (" \n<think>hm", ""),
    ("</think> ", ""),
)


@pytest.mark.parametrize(("text", "left"), ROWS)
def test_what_is_left(text: str, left: str) -> None:
    """000-03: blocks go, also nested, unclosed and stray ones, in any case and with attributes."""
    assert stripped(text) == left


UNTOUCHED = (
    "",
    "  trailing and leading \n",
    "I think <thinker>so</thinker>",
    "<thinks>x</thinks> <think-tank>y</think-tank> <think:er> <think.x>",
    "<think twice>before</b>",
    "a < think > b",
    "<think",
    "think>x</think",
    "1 < 2 and 3 > 2\r\n",
    "&lt;think&gt;x&lt;/think&gt;",
    "\u200b<b>\u00e9</b>\u2028",
)


@pytest.mark.parametrize("text", UNTOUCHED)
def test_text_without_a_block(text: str) -> None:
    """000-03: text without any block stays as it is, to the byte."""
    assert stripped(text) == text


SHOWN = st.text(st.sampled_from("ab \n\u00e9>="), max_size=5)
HIDDEN = st.text(st.sampled_from("ab \n\u00e9>="), max_size=5)
NAMES = st.sampled_from(["think", "Thinking", "scratch_pad", "SCRATCHPAD", "reasoning"])


def around(inside: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """Make blocks around what is inside."""
    return st.builds(lambda name, text: f"<{name}>{text}</{name}>", NAMES, inside)


BLOCKS = st.recursive(
    around(HIDDEN), lambda inner: around(st.lists(inner, max_size=3).map("b".join)), max_leaves=5
)


@given(st.lists(st.tuples(SHOWN, BLOCKS), min_size=1, max_size=6), SHOWN)
def test_what_stands_around_blocks_is_kept(pieces: list[tuple[str, str]], end: str) -> None:
    """000-03: however blocks are nested, what stands around them stays, and nothing of them."""
    text = "".join(shown + block for shown, block in pieces) + end
    assert stripped(text) == ("".join(shown for shown, _ in pieces) + end).strip()


@pytest.mark.parametrize(
    "unit",
    ["<think ", "<think>", "</think>", "<", "<think></think>", "<think><reasoning></think>", "a>"],
)
def test_work_is_linear(unit: str) -> None:
    """Screening uses linear work: four times the text is four times the work."""
    assert growth(stripped, unit) < GROWTH_MAX


def test_patterns_give_nothing_back() -> None:
    """Screening uses no pattern that may be tried in more ways than one."""
    found = list(patterns_of(reasoning))
    assert found
    assert [loose_repeats(each) for each in found] == [[]] * len(found)
