"""Which terms a text has, whatever it is written in."""

import string
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from broker.retrieval.irregular import BASES
from broker.retrieval.segments import humps, numbered, segments, sort_of, words
from broker.retrieval.spelling import plain
from broker.retrieval.terms import distinct_terms, jaccard, query_terms, term_vector
from broker.retrieval.tokens import terms
from broker.retrieval.words import STOP_WORDS
from providers.entries import RECORD_TERMS_MAX, TERM_LENGTH_MAX, RecallEntry
from providers.recall import QUERY_TERMS_MAX
from providers.rules import check_entry

FOUND_BY = {
    "stem": ("we deployed it on Mondays", "deploying Monday"),
    "irregular verb": ("we went there and bought it", "go buy"),
    "irregular verb asked": ("go and buy it", "went bought"),
    "irregular noun": ("two children", "child"),
    "uuid": ("id 550e8400-e29b-41d4-a716-446655440000", "550e8400-e29b-41d4-a716-446655440000"),
    "elision": ("l'homme", "homme"),
    "soft hyphen": ("co\u00adoperate", "cooperate"),
    "hebrew points": ("\u05e9\u05b8\u05c1\u05dc\u05d5\u05b9\u05dd", "\u05e9\u05dc\u05d5\u05dd"),
    "chinese": ("我们在北京开会", "北京"),
    "katakana of half width": ("ｻｰﾊﾞｰ", "サーバー"),
    "hindi": ("हिन्दी में", "हिन्दी"),
    "case": ("The OFFICE", "office"),
    "accent": ("the café", "cafe"),
    "full width": ("\uff21\uff22\uff23", "abc"),
    "snake case": ("max_retry_count", "retry"),
    "snake case whole": ("max_retry_count", "max_retry_count"),
    "camel case": ("maxRetryCount", "retry"),
    "camel case whole": ("maxRetryCount", "maxretrycount"),
    "capitals": ("HTTPServer", "server"),
    "kebab case": ("blue-green deploys", "green"),
    "dotted": ("broker.client.connect", "client"),
    "windows path": (r"in C:\x\y", "y"),
    "windows path whole": (r"in C:\x\y", r"C:\x\y"),
    "path": ("see /usr/lib/node", "lib"),
    "file": ("see /etc/broker.toml", "broker.toml"),
    "e-mail": ("mira@example.com", "example.com"),
    "url": ("https://docs.example.com/a?b=c", "docs.example.com"),
    "version": ("release 1.2.3", "1.2.3"),
    "numbered": ("on node42", "node"),
    "possessive": ("Mira's tea", "mira"),
    "curly possessive": ("Mira\u2019s tea", "mira"),
    "japanese": ("会議は東京で開かれる", "東京"),
    "one han": ("会議は東京で開かれる", "京"),
    "katakana": ("サーバーを再起動", "サーバー"),
    "korean": ("회의실은 3층입니다", "회의실"),
    "thai": ("ห้องประชุม", "ประชุม"),
    "arabic": ("الْقَهْوَة", "القهوة"),
    "emoji": ("ship it 🚀!", "🚀"),
    "emoji tone": ("fine 👍🏽", "👍"),
    "flag": ("from 🇫🇷", "🇫🇷"),
    "greek": ("ΟΔΟΣ", "οδος"),
}


@pytest.mark.parametrize("name", FOUND_BY)
def test_what_is_found_by_what(name: str) -> None:
    """000-02, 6.6-10: a whole, its parts, in every script, with or without accents."""
    text, query = FOUND_BY[name]
    assert set(query_terms(query)) & distinct_terms(text), (query_terms(query), text)


@pytest.mark.parametrize("text", ["na\u00efve caf\u00e9", "가나다", "が", "Å"])
def test_composed_and_decomposed_are_one(text: str) -> None:
    """6.6-10: NFC and NFD have the same terms."""
    decomposed = unicodedata.normalize("NFD", text)
    assert distinct_terms(decomposed) == distinct_terms(unicodedata.normalize("NFC", text))


@pytest.mark.parametrize("query", ["foo:*", '"unbalanced', "a & | !", "(x", "%_", "NOT y", "'"])
def test_nothing_is_an_operator(query: str) -> None:
    """000-02: signs are no terms, and words keep none."""
    assert all(any(map(str.isalnum, term)) for term in query_terms(query))


def test_stop_words_count_only_alone() -> None:
    """000-02: they tell nothing beside others; where there is nothing else they are the query."""
    assert query_terms("what is the port") == ("port",)
    assert query_terms("to be or not to be") == ("to", "be", "or", "not")
    assert query_terms("x") == ("x",)
    assert query_terms("?!") == ()


def test_a_vector_counts() -> None:
    """Q-3: terms of title, content, tags and subject, with repetitions."""
    vector = term_vector(title="Tea", content="tea and tea", tags=("green",), subject="Mira")
    assert dict(vector.counts) == {"tea": 3, "and": 1, "green": 1, "mira": 1}
    assert vector.length == 6


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_vector_has_bounds(more: int) -> None:
    """C-15: 2,048 terms that differ; the length counts all."""
    count = RECORD_TERMS_MAX + more
    text = " ".join(f"{number}" for number in range(1, count + 1))
    vector = term_vector(title=None, content=text, tags=(), subject=None)
    assert (len(vector.counts), vector.length) == (min(count, RECORD_TERMS_MAX), count)


@pytest.mark.parametrize("more", [-1, 0, 1])
def test_a_query_has_bounds(more: int) -> None:
    """64 terms that differ."""
    count = QUERY_TERMS_MAX + more
    text = " ".join(f"{number} {number}" for number in range(1, count + 1))
    assert len(query_terms(text)) == min(count, QUERY_TERMS_MAX)


@pytest.mark.parametrize("word", ["a" * 70, "é" * 70, "x_" * 70, "\u0130" * 70])
def test_a_term_has_bounds(word: str) -> None:
    """C-15: 64 code points, also where folding makes a word longer; a long one is found."""
    assert all(1 <= len(term) <= TERM_LENGTH_MAX for term in distinct_terms(word))
    assert set(query_terms(word)) & distinct_terms(word)


def test_a_long_text_takes_the_others_no_place() -> None:
    """C-15: title, subject and tags come first, and stay whatever the content is."""
    text = " ".join(map(str, range(10_000, 10_000 + RECORD_TERMS_MAX)))
    vector = term_vector(title="lamp", content=text, tags=("green",), subject="Mira")
    assert {"lamp", "green", "mira"} <= vector.counts.keys()


UNPLEASANT = {
    "joined": "a_",
    "humps": "aB",
    "capitals": "AB",
    "numbered": "ab1",
    "path": "/",
    "backslash": "\\",
    "colon": "a:",
    "apostrophe": "'",
    "endings": "d'",
    "negation": "a't",
    "flags": "🇫",
    "family": "👩\u200d",
    "accents": "\u0301",
    "run": "가",
    "vowel signs": "\u0e34",
    "written out": "\ufdfa",
    "spaces": " ",
    "one word": "a",
}


@pytest.mark.parametrize("name", UNPLEASANT)
def test_unpleasant_texts_are_bounded(name: str) -> None:
    """40,000 signs that a matcher might look back over, or a function call itself for."""
    sign = UNPLEASANT[name]
    text = (sign * 40_000)[:40_000]
    found = terms(text)
    assert len(found) <= 3 * len(text)
    assert all(1 <= len(term) <= TERM_LENGTH_MAX for term in found)
    assert len(found) <= 2 * len(terms(text[:20_000])) + 4


@pytest.mark.parametrize("word", ["deploy", "d'd's'll", "x1y2", "aBC1d_e/f"])
def test_what_is_there_again_has_the_same_terms(word: str) -> None:
    """A text has the terms of its words, in order, as often as they are there."""
    assert terms(f"{word} {word}\n{word}") == terms(word) * 3


ASCII = st.characters(max_codepoint=127)
TEXTS = st.text(max_size=40) | st.text(
    "aBßİéǆ가東กﬁ٣1_-./:'\\\u2019ς\u0301\u3099\u0e34👍🏽🇫 \n\0\x85\u200b\u200d", max_size=40
)


@settings(deadline=None)
@given(TEXTS)
def test_terms_are_what_stores_keep(text: str) -> None:
    """C-15: whatever the text, an entry of it is one that a store takes."""
    check_entry(RecallEntry(term_vector(title=text, content=text, tags=(text,), subject=text)))
    asked = query_terms(text)
    assert len(set(asked)) == len(asked) <= QUERY_TERMS_MAX


@settings(deadline=None)
@given(st.text(ASCII, max_size=40))
def test_texts_of_ascii_are_cut_like_others(text: str) -> None:
    """One more letter, that is not of ASCII, changes nothing of what stands before it."""
    assert segments(f"{text} \u00e9") == [*segments(text), "\u00e9"]


@settings(deadline=None)
@given(
    st.text("aBcDz019_-./:'\\", min_size=1, max_size=12) | st.text(ASCII, min_size=1, max_size=12)
)
def test_names_of_ascii_are_read_like_others(name: str) -> None:
    """One more letter or digit, that is not of ASCII, changes nothing of what stands before it."""
    *before, last = humps(name)
    assert humps(f"{name}\u05d0") == [*before, f"{last}\u05d0"]
    assert words(f"{name}/\u05d0") == [*words(name), "\u05d0"]
    assert all(sort_of(each) is sort_of(f"{each}\u05d0") for each in segments(name))
    for each in words(name):
        one, other = numbered(f"{each}1"), numbered(f"{each}\u0661")
        assert (one and (one[0], f"{one[1][:-1]}\u0661")) == other


@settings(deadline=None)
@given(st.text(string.ascii_letters, min_size=1, max_size=70))
def test_the_case_of_a_word_does_not_count(word: str) -> None:
    """Small letters alone, and those after a capital, take a shorter way than capitals do."""
    assert terms(word.lower()) == terms(word.title()) == terms(word.upper())


@settings(deadline=None)
@given(TEXTS)
def test_a_text_is_found_by_itself(text: str) -> None:
    """Every term that is asked for by a text is a term of it."""
    assert set(query_terms(text)) <= distinct_terms(text)


@settings(deadline=None)
@given(TEXTS)
def test_spelling_is_settled_at_once(text: str) -> None:
    """What was made plain stays as it is, and so do composed and decomposed forms of it."""
    assert plain(plain(text)) == plain(text)
    assert plain(unicodedata.normalize("NFD", text)) == plain(unicodedata.normalize("NFC", text))


def test_irregular_forms_have_one_base_each() -> None:
    """No form stands for itself or for two, and no base is a form of another word."""
    assert not BASES.keys() & set(BASES.values())
    assert not (BASES.keys() | set(BASES.values())) & STOP_WORDS


@pytest.mark.parametrize(
    ("one", "other", "share"),
    [("", "", 0.0), ("a", "", 0.0), ("a b", "a b", 1.0), ("a b c", "a b d", 0.5)],
)
def test_the_share_of_common_terms(one: str, other: str, share: float) -> None:
    """000-15: of nothing it is 0."""
    assert jaccard(distinct_terms(one), distinct_terms(other)) == share


def test_a_ligature_of_many_letters_takes_no_longer() -> None:
    """What one sign stands for is cut where a text of letters would be."""
    text = "\ufdfa" * 39_900
    assert term_vector(title=None, content=text, tags=(), subject=None).length <= 40_000
