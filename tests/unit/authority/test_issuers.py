"""Unsafe settings cannot be constructed."""

from pathlib import Path
from typing import Any

import pytest

from broker.authority.issuers import ClaimNames, KeysFile, KeysUrl, TrustedIssuer
from broker.authority.signatures import SignatureCache
from broker.authority.tokens import TokenVerifier
from broker.outbound import PeerSettings

FILE = KeysFile(Path("keys.json"))


def issuer(**changes: Any) -> TrustedIssuer:
    good: dict[str, Any] = {
        "issuer": "https://identity.test/",
        "audience": "knowledge-tests",
        "algorithms": frozenset({"RS256"}),
        "keys": FILE,
    }
    return TrustedIssuer(**{**good, **changes})


@pytest.mark.parametrize(
    "algorithms",
    [set(), {"HS256"}, {"none"}, {"RS256", "HS512"}, {"RS384"}, {"rs256"}, {"ES256K"}, {"NONE"}],
)
def test_algorithms_that_cannot_be_configured(algorithms: set[str]) -> None:
    """004-12: nothing symmetric, not none, nothing that was not asked for."""
    with pytest.raises(ValueError, match="algorithms"):
        issuer(algorithms=frozenset(algorithms))


@pytest.mark.parametrize("algorithm", ["RS256", "PS256", "ES256", "EdDSA"])
def test_algorithms_that_can(algorithm: str) -> None:
    """004-12: the four of the API."""
    assert issuer(algorithms=frozenset({algorithm})).algorithms == {algorithm}


@pytest.mark.parametrize(
    "changes",
    [
        {"issuer": ""},
        {"issuer": "identity.test"},
        {"issuer": "http://identity.test/"},
        {"issuer": "https://"},
        {"issuer": "https://identity.test/\n"},
        {"issuer": "https://identity.test/" + "x" * 512},
        {"audience": ""},
        {"audience": "a\nb"},
        {"leeway_s": -0.1},
        {"leeway_s": 30.1},
        {"leeway_s": float("nan")},
    ],
    ids=str,
)
def test_unsafe_issuer_is_refused(changes: dict[str, Any]) -> None:
    """004-12: an issuer is an https URL, the leeway at most 30 seconds."""
    with pytest.raises(ValueError, match=r"issuer|audience|leeway"):
        issuer(**changes)


@pytest.mark.parametrize("leeway_s", [0.0, 30.0])
def test_leeway_at_its_limits(leeway_s: float) -> None:
    """004-12: 0 and 30 seconds are allowed."""
    assert issuer(leeway_s=leeway_s).leeway_s == leeway_s


@pytest.mark.parametrize(
    "names",
    [
        {"project": "sub"},
        {"project": ""},
        {"project": "run_id"},
        {"tenant": ()},
        {"purpose": ()},
        {"tenant": ("t", "t")},
        {"purpose": ("iss",)},
    ],
    ids=str,
)
def test_claim_names_that_cannot_be_told_apart(names: dict[str, Any]) -> None:
    """004-10: one claim says one thing."""
    with pytest.raises(ValueError, match="claim"):
        ClaimNames(**names)


@pytest.mark.parametrize(
    "url",
    [
        "http://identity.test/keys",
        "identity.test/keys",
        "https:///keys",
        "https://user@identity.test/keys",
        "https://user:secret@identity.test/keys",
        "https://identity.test/keys#1",
        "file:///keys",
    ],
)
def test_key_set_url_is_plain_https(url: str) -> None:
    """004-12: keys come over https from a configured place."""
    with pytest.raises(ValueError, match="URL of a key set"):
        KeysUrl(url)


def test_an_issuer_is_named_once() -> None:
    """004-12: tokens are tried with the one issuer that equals theirs."""
    with pytest.raises(ValueError, match="issuer"):
        TokenVerifier([issuer(), issuer(audience="other")])
    with pytest.raises(ValueError, match="issuer"):
        TokenVerifier([])


@pytest.mark.parametrize(("entries", "seconds"), [(0, 60.0), (10_001, 60.0), (1, 0.0), (1, 60.1)])
def test_signature_cache_is_bounded(entries: int, seconds: float) -> None:
    """004-03: at most 10,000 entries for at most 60 seconds."""
    with pytest.raises(ValueError, match="signature cache"):
        SignatureCache(lambda: 0.0, entries_max=entries, seconds=seconds)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "owner",
        "owner:port",
        "owner:70000",
        "dns:///owner:443",
        "unix:/owner",
        "https://owner:443",
        "owner:443/path",
        "user@owner:443",
        "[::1",
    ],
)
def test_owner_address_is_host_and_port(address: str) -> None:
    """004-02: the token goes to one configured host."""
    with pytest.raises(ValueError, match=r"host:port|[Pp]ort|IPv6"):
        PeerSettings(address=address)


@pytest.mark.parametrize("address", ["localhost:1", "127.0.0.1:1", "127.9.9.9:1", "[::1]:1"])
def test_plaintext_to_loopback(address: str) -> None:
    """004-02: plaintext only when asked for and only to this machine."""
    assert PeerSettings(address=address, plaintext_loopback=True).plaintext_loopback


@pytest.mark.parametrize(
    "changes",
    [
        {"address": "10.0.0.1:1", "plaintext_loopback": True},
        {"address": "owner:1", "plaintext_loopback": True},
        {"address": "localhost.evil.test:1", "plaintext_loopback": True},
        {"address": "0.0.0.0:1", "plaintext_loopback": True},
        {"address": "[::]:1", "plaintext_loopback": True},
        {"address": "localhost:1", "plaintext_loopback": True, "root_ca_file": Path("ca")},
        {"client_key_file": Path("key")},
        {"client_certificate_file": Path("certificate")},
        {"timeout_s": 0.0},
        {"timeout_s": 30.1},
        {"timeout_s": float("nan")},
    ],
    ids=str,
)
def test_unsafe_owner_is_refused(changes: dict[str, Any]) -> None:
    """004-02: no token in the clear over a network, no half configured certificate."""
    with pytest.raises(ValueError, match=r"plaintext|certificate|timeout"):
        PeerSettings(**{"address": "owner:443", **changes})
