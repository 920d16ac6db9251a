"""What the environment says wins over the file, and what is empty says nothing."""

from pathlib import Path

import pytest
from pydantic import ValidationError

from broker.config import parse_settings

FILE = """
[server]
metrics_listen = "127.0.0.1:9464"
[[issuers]]
issuer = "https://i"
audience = "a"
algorithms = ["ES256"]
jwks_file = "/j"
[owner]
address = "o:1"
[store]
dsn = "postgresql://r:of-the-file@127.0.0.1/d"
[[providers]]
provider_id = "p"
adapter = "postgres.native-memory"
adapter_version = "1.0.0"
options_schema_version = 1
options_revision = "v1"
hosting = "native"
advertised_capabilities = ["memory.records.read"]
"""
DSN = "postgresql://r:of-the-environment@127.0.0.1/d"


def test_the_environment_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BROKER_SERVER__METRICS_LISTEN", "127.0.0.1:1")
    monkeypatch.setenv("BROKER_STORE__DSN", DSN)
    settings = parse_settings(FILE, named="file")
    assert settings.server.metrics_listen == "127.0.0.1:1"
    assert settings.store.dsn.get_secret_value() == DSN


@pytest.mark.parametrize("name", ["SERVER__METRICS_LISTEN", "SERVER__WORKERS", "PROVIDERS"])
def test_what_is_empty_leaves_the_file_as_it_is(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = parse_settings(FILE, named="file")
    monkeypatch.setenv(f"BROKER_{name}", "")
    assert parse_settings(FILE, named="file") == plain


def test_a_file_of_the_environment_wins_over_the_address_in_the_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    secret = tmp_path / "dsn"
    secret.write_text(DSN)
    monkeypatch.setenv("BROKER_STORE__DSN_FILE", str(secret))
    assert parse_settings(FILE, named="file").store.dsn.get_secret_value() == DSN
    monkeypatch.setenv("BROKER_STORE__DSN", DSN)
    with pytest.raises(ValidationError, match="dsn is given twice"):
        parse_settings(FILE, named="file")


def test_an_address_of_the_environment_wins_over_the_file_in_the_settings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("BROKER_STORE__DSN", DSN)
    text = FILE.replace("dsn = ", "dsn_file = ")
    assert parse_settings(text, named="file").store.dsn.get_secret_value() == DSN
