"""What a search takes for the same text. The laws of search ask the same of every adapter."""

import sys
import unicodedata
from typing import Literal

import pytest

from providers.conformance import specimens
from providers.folding import folded, search_tag, search_text

UNASSIGNED = {"Cn", "Co", "Cs"}
CHARACTERS = [
    each
    for each in map(chr, range(sys.maxunicode + 1))
    if unicodedata.category(each) not in UNASSIGNED
]
DOTLESS = "\u0131"


def test_folding_again_changes_nothing() -> None:
    """004-67: over every character there is."""
    assert [each for each in CHARACTERS if folded(folded(each)) != folded(each)] == []


@pytest.mark.parametrize("form", ["NFC", "NFD"])
def test_composition_does_not_count(form: Literal["NFC", "NFD"]) -> None:
    """004-67: over every character there is."""
    spelt = {each: unicodedata.normalize(form, each) for each in CHARACTERS}
    assert [each for each, other in spelt.items() if folded(each) != folded(other)] == []


def test_case_does_not_count() -> None:
    """004-67: over every character there is; only the dotless i has a capital that is another's."""
    found = {
        each
        for each in CHARACTERS
        if {folded(each.upper()), folded(each.lower()), folded(each.title())} != {folded(each)}
    }
    assert found == {DOTLESS}


def test_ascii_is_folded_like_the_rest() -> None:
    """004-67: the short way for ASCII gives what the long one does."""
    text = "".join(map(chr, range(128)))
    assert folded(text) == folded(text + "\u00e9")[:-1]


def test_nothing_reaches_from_one_field_into_the_next() -> None:
    """004-67: what stands between fields and around tags is in no folded text."""
    blank = specimens.content("", type="", title="", tags=("",))
    between = {*search_text(blank)}
    assert len(between) == 2
    assert [each for each in CHARACTERS if between & {*folded(each)}] == []


def test_a_tag_is_found_as_a_whole() -> None:
    """004-66: neither a part of one nor a title that equals it."""
    said = search_text(specimens.content("java", type="java", title="java", tags=("Build", "x")))
    assert search_tag("BUILD") in said and search_tag("x") in said
    assert search_tag("java") not in said and search_tag("buil") not in said
    assert search_tag("") not in said


def test_the_rationale_is_not_searched() -> None:
    """004-67: type, title, content and tags are."""
    said = search_text(
        specimens.content("C", type="Ty", title="Ti", tags=("Ta",), rationale="secret")
    )
    assert all(each in said for each in ("ty", "ti", "c", "ta"))
    assert "secret" not in said
