"""Settings of embeddings: what is taken, what is refused, and what is never shown."""

from pathlib import Path
from typing import Any

import pytest
import trustme
from pydantic import ValidationError

from broker.cli.refusals import readable
from broker.config import (
    HttpEmbeddingsSettings,
    LocalEmbeddingsSettings,
    NoEmbeddingsSettings,
    Settings,
    parse_settings,
)
from broker.safety import UnsafeConfigurationError, verify
from tests.unit.test_environment import FILE
from tests.unit.test_server_settings import REST

HTTP: dict[str, Any] = {
    "provider": "http",
    "endpoint": "https://model.test/v1",
    "model": "m",
    "dimension": 384,
}


def settings(**embeddings: Any) -> Settings:
    return Settings(embeddings=embeddings, **REST)


def http(**changed: Any) -> HttpEmbeddingsSettings:
    """Verified settings of an endpoint."""
    found = settings(**{**HTTP, **changed})
    verify(found, development=False)
    assert isinstance(found.embeddings, HttpEmbeddingsSettings)
    return found.embeddings


def test_there_are_none_by_default() -> None:
    assert Settings(**REST).embeddings == NoEmbeddingsSettings()
    assert settings(provider="none").embeddings == NoEmbeddingsSettings()
    assert settings(provider="local").embeddings == LocalEmbeddingsSettings(provider="local")


def test_an_endpoint_is_for_no_tenant_until_one_is_listed() -> None:
    assert http().tenants == ()
    assert http(tenants=["t1"]).tenants == ("t1",)
    assert not http().allow_loopback


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"provider": "remote"}, "embeddings"),
        ({"provider": "none", "model": "m"}, "model"),
        ({"provider": "local", "tenants": ["t"]}, "tenants"),
        ({"provider": "http"}, "endpoint"),
        ({**HTTP, "model": ""}, "model"),
        ({**HTTP, "model": "m" * 129}, "model"),
        ({**HTTP, "dimension": 0}, "dimension"),
        ({**HTTP, "dimension": 1_537}, "dimension"),
        ({**HTTP, "timeout_seconds": 0}, "timeout_seconds"),
        ({**HTTP, "timeout_seconds": 10.1}, "timeout_seconds"),
        ({**HTTP, "code_points_max": 0}, "code_points_max"),
        ({**HTTP, "code_points_max": 40_001}, "code_points_max"),
        ({**HTTP, "tenants": ["a b"]}, "tenants"),
    ],
)
def test_what_does_not_fit_is_named(given: dict[str, Any], named: str) -> None:
    with pytest.raises(ValidationError) as refused:
        settings(**given)
    assert named in readable(refused.value)


@pytest.mark.parametrize(
    "changed",
    [
        {"model": "m" * 128, "dimension": 1_536, "timeout_seconds": 10, "code_points_max": 40_000},
        {"endpoint": "https://10.0.0.1"},
        {"endpoint": "https://[2606:4700::1111]:8443/v1/"},
        {"endpoint": "https://127.0.0.1/v1", "allow_loopback": True},
        {"endpoint": "https://localhost/v1"},
        {"key": "k" * 4_096},
    ],
)
def test_what_fits_is_taken(changed: dict[str, Any]) -> None:
    """A name is not looked up here: its addresses are, whenever it is called."""
    http(**changed)


@pytest.mark.parametrize(
    ("endpoint", "said"),
    [
        ("http://model.test/v1", "must be an https URL"),
        ("http://127.0.0.1/v1", "must be an https URL"),
        ("model.test", "must be an https URL"),
        ("https://", "must be an https URL"),
        ("https://:443/v1", "must be an https URL"),
        ("https://model.test:port/v1", "must be an https URL"),
        ("https://model.test:70000/v1", "must be an https URL"),
        ("https://[::1/v1", "must be an https URL"),
        ("https://model.test/v 1", "must be an https URL"),
        ("https://m\u00f6del.test/v1", "must be an https URL"),
        ("https://user:hush@model.test/v1", "no user, query or fragment"),
        ("https://model.test/v1?key=hush", "no user, query or fragment"),
        ("https://model.test/v1#", "no user, query or fragment"),
        ("https://169.254.169.254/v1", "link-local or a metadata service"),
        ("https://[fe80::1]/v1", "link-local or a metadata service"),
        ("https://127.0.0.1/v1", "allow_loopback"),
        ("https://[::1]/v1", "allow_loopback"),
    ],
)
def test_unsafe_endpoints_are_refused(endpoint: str, said: str) -> None:
    """000-41: https only, and never where a machine's secrets are."""
    with pytest.raises(UnsafeConfigurationError, match=said) as refused:
        http(endpoint=endpoint)
    assert "hush" not in str(refused.value)


@pytest.mark.parametrize("key", ["hush hush", "hush\x7f", "h\u00fcsh", "", "h" * 4_097])
def test_keys_that_no_header_takes_are_refused(key: str) -> None:
    with pytest.raises(UnsafeConfigurationError, match=r"embeddings\.key") as refused:
        http(key=key)
    assert not key or key not in str(refused.value)


def test_the_key_stands_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("hush-hush\n")
    found = http(key_file=file)
    assert found.key is not None and found.key.get_secret_value() == "hush-hush"
    assert "hush-hush" not in repr(found)
    with pytest.raises(ValidationError) as refused:
        http(key_file=file, key="other")
    assert "key is given twice" in readable(refused.value)


def test_the_environment_wins_over_the_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "key"
    secret.write_text("of-the-file")
    text = f"""{FILE}
[embeddings]
provider = "http"
endpoint = "https://model.test/v1"
model = "m"
dimension = 3
key_file = "{secret}"
"""
    monkeypatch.setenv("BROKER_EMBEDDINGS__KEY", "of-the-environment")
    monkeypatch.setenv("BROKER_EMBEDDINGS__TENANTS", '["t1"]')
    found = parse_settings(text, named="file").embeddings
    assert isinstance(found, HttpEmbeddingsSettings) and found.key is not None
    assert found.key.get_secret_value() == "of-the-environment"
    assert found.tenants == ("t1",)


def test_the_environment_alone_is_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_EMBEDDINGS__PROVIDER", "local")
    assert isinstance(parse_settings(FILE, named="file").embeddings, LocalEmbeddingsSettings)


def test_authorities_must_be_certificates(tmp_path: Path) -> None:
    file = tmp_path / "ca.pem"
    trustme.CA().cert_pem.write_to_path(file)
    http(ca_file=file)
    file.write_text("none")
    with pytest.raises(UnsafeConfigurationError, match=r"embeddings\.ca_file"):
        http(ca_file=file)
