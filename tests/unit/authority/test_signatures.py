"""The signature cache by itself."""

from broker.authority.claims import Claims
from broker.authority.signatures import SignatureCache
from tests.fixtures.forged_tokens import Clocks

CLAIMS = Claims(
    issuer="https://identity.test/",
    subject="actor-a",
    audiences=frozenset({"knowledge-tests"}),
    expires=2.0,
    issued=1.0,
    not_before=None,
    project=None,
    run=None,
    tenant=None,
    purpose=None,
)


def test_oldest_entry_makes_room() -> None:
    """004-03: the cache holds so many entries and not one more."""
    cache = SignatureCache(Clocks().monotonic, entries_max=2)
    for digest in (b"1", b"2", b"3"):
        cache.keep(digest, CLAIMS, 1)
    assert len(cache) == 2
    assert cache.find(b"1") is None
    assert cache.find(b"3") is not None


def test_keeping_again_renews_the_place_and_the_generation() -> None:
    """004-03: a token verified under new keys belongs to them."""
    cache = SignatureCache(Clocks().monotonic, entries_max=2)
    for digest, generation in ((b"1", 1), (b"2", 1), (b"1", 2), (b"3", 2)):
        cache.keep(digest, CLAIMS, generation)
    kept = cache.find(b"1")
    assert kept is not None
    assert kept.generation == 2
    assert cache.find(b"2") is None


def test_entry_ends_on_time() -> None:
    """004-03: gone at 60 seconds."""
    clocks = Clocks()
    cache = SignatureCache(clocks.monotonic)
    cache.keep(b"1", CLAIMS, 1)
    clocks.advance(60)
    assert cache.find(b"1") is None
    assert len(cache) == 0
