"""Secrets in files of their own: addresses of databases, and options of providers."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from broker.config import SECRET_BYTES_MAX, ProviderSettings, StoreSettings, read_secret

DSN = "postgresql://r:secret@127.0.0.1/d"
PROVIDER: dict[str, Any] = {
    "provider_id": "p",
    "adapter": "postgres.native-memory",
    "adapter_version": "1.0.0",
    "options_schema_version": 1,
    "options_revision": "v1",
    "hosting": "native",
    "advertised_capabilities": ["memory.records.read"],
}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "dsn"
    path.write_text(f"{DSN}\n")
    return path


def test_the_store_reads_its_address_from_a_file(file: Path) -> None:
    assert StoreSettings.model_validate({"dsn_file": file}).dsn.get_secret_value() == DSN


def test_the_environment_names_the_file_too(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from broker.config import Settings

    monkeypatch.setenv("BROKER_STORE__DSN_FILE", str(file))
    issuer = {"issuer": "https://i", "audience": "a", "algorithms": ["ES256"], "jwks_file": "/j"}
    settings = Settings.model_validate(
        {
            "issuers": [issuer],
            "owner": {"address": "o:1"},
            "events": {"address": "e:1", "audience": "events"},
            "providers": [PROVIDER],
        }
    )
    assert settings.store.dsn.get_secret_value() == DSN


def test_a_provider_reads_options_from_files(file: Path) -> None:
    given = {**PROVIDER, "options": {"generation": 1}, "option_files": {"dsn": file}}
    provider = ProviderSettings.model_validate(given)
    assert provider.options == {"generation": 1, "dsn": DSN}
    assert "secret" not in repr(provider)


def test_options_need_no_files() -> None:
    assert ProviderSettings.model_validate(PROVIDER).options == {}


def test_a_secret_given_twice_is_refused(file: Path) -> None:
    with pytest.raises(ValidationError, match="dsn is given twice"):
        StoreSettings.model_validate({"dsn": DSN, "dsn_file": file})
    given = {**PROVIDER, "options": {"dsn": DSN}, "option_files": {"dsn": file}}
    with pytest.raises(ValidationError, match="dsn is given twice"):
        ProviderSettings.model_validate(given)


def test_a_secret_given_nowhere_is_refused() -> None:
    with pytest.raises(ValidationError, match="dsn"):
        StoreSettings.model_validate({})


@pytest.mark.parametrize("size", [SECRET_BYTES_MAX - 1, SECRET_BYTES_MAX])
def test_secrets_up_to_the_limit_are_read(tmp_path: Path, size: int) -> None:
    path = tmp_path / "secret"
    path.write_bytes(b"x" * size)
    assert read_secret(path) == "x" * size


@pytest.mark.parametrize("content", [b"", b" \n", b"\xff", b"x" * (SECRET_BYTES_MAX + 1)])
def test_what_is_no_secret_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "secret"
    path.write_bytes(content)
    with pytest.raises(ValueError, match="must hold one secret"):
        read_secret(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(ValidationError, match=r"dsn: .*absent cannot be read: No such file"):
        StoreSettings.model_validate({"dsn_file": tmp_path / "absent"})
