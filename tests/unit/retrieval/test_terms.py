"""Which terms a text has, whatever it is written in."""

import unicodedata

import pytest

from broker.retrieval.terms import distinct_terms, jaccard, query_terms, term_vector
from providers.entries import RECORD_TERMS_MAX, TERM_LENGTH_MAX
from providers.recall import QUERY_TERMS_MAX

FOUND_BY = {
    "stem": ("we deployed it on Mondays", "deploying Monday"),
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


def test_unpleasant_texts_take_no_longer() -> None:
    """40,000 signs that a matcher might look back over: as many terms as there are."""
    for text in (
        "a_" * 20_000,
        "🇫" * 40_000,
        "aB" * 20_000,
        "'" * 40_000,
        "/" * 40_000,
        "가" * 40_000,
    ):
        assert term_vector(title=None, content=text, tags=(), subject=None).length <= 120_000


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
