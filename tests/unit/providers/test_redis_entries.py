"""Entries as they are kept: what stands before a count stands nowhere else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from providers.conformance import specimens
from providers.entries import RecallEntry, TermVector
from providers.redis.entries import entry_document, needle

TAG = "0123456789abcdef"
TERM = st.text("ab1 \u00e4\u2028\U0001f600\\%", min_size=1, max_size=4)
COUNTS = st.dictionaries(TERM, st.integers(1, 99), max_size=20)


@given(counts=COUNTS, asked=st.lists(TERM, max_size=5))
def test_a_needle_is_found_once_where_its_term_is(counts: dict[str, int], asked: list[str]) -> None:
    """000-02: and its count stands behind it."""
    entry = RecallEntry(TermVector(counts, 99 * 20), specimens.vector(1.0, 2.0, 3.0))
    terms = entry_document(TAG, "r1", entry).rpartition(b"\0")[2]
    for term in (*asked, *counts):
        _, *behind = terms.split(needle(term).encode())
        assert len(behind) == (term in counts)
        if behind:
            assert behind[0].startswith(b"%d\n" % counts[term])


def test_an_entry_says_whose_it_is_and_what_it_holds() -> None:
    """004-44: project, record, length, and the bytes and the model of its vector."""
    vector = specimens.vector(1.0, 0.0)
    full = entry_document(TAG, "r1", specimens.entry("java java build", vector=vector))
    begin = b"0123456789abcdef\0r1\0003\0008\0m1\0"
    assert full == begin + vector.packed + b"\nbuild\t1\njava\t2\n"
    bare = entry_document(TAG, "r1", specimens.entry())
    assert bare == b"0123456789abcdef\0r1\0000\0000\0\0\n"
    assert entry_document(TAG, "r1", None) == b""


@pytest.mark.parametrize("term", ["a\t1\nb", "a\nb", "\t", "a\0", "\ud800"])
def test_what_no_entry_holds_is_looked_for_nowhere(term: str) -> None:
    """000-02: a term of a query is not two of a record."""
    entry = specimens.entry("a b 1")
    assert needle(term).encode() not in entry_document(TAG, "r1", entry).rpartition(b"\0")[2]
