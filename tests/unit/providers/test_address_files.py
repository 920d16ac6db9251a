"""Files that an address of PostgreSQL names, or that a driver takes untold (004-101)."""

from pathlib import Path

import pytest
import trustme

from providers.address import trust_fault

FAR = "postgresql://r:hush-hush@db.example/d"
VARIABLES = ("PGSSLMODE", "PGSSLROOTCERT", "PGSSLCERT", "PGSSLKEY", "PGSERVICE", "PGSSLPASSWORD")


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home without anything in it."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


@pytest.fixture
def authority(tmp_path: Path) -> Path:
    """A file of authorities."""
    file = tmp_path / "ca.crt"
    trustme.CA().cert_pem.write_to_path(str(file))
    return file


@pytest.mark.parametrize("mode", ["verify-full", "verify-ca"])
def test_the_file_that_nobody_named_is_named(home: Path, mode: str) -> None:
    fault = trust_fault(f"{FAR}?sslmode={mode}")
    assert fault is not None
    assert fault.startswith(f"sslrootcert: {home}/.postgresql/root.crt cannot be read: No such")
    assert fault.endswith("name the file of the authorities with sslrootcert=")


def test_the_file_at_home_is_taken(home: Path, authority: Path) -> None:
    (home / ".postgresql").mkdir()
    authority.rename(home / ".postgresql" / "root.crt")
    assert trust_fault(f"{FAR}?sslmode=verify-full") is None


def test_the_named_file_is_taken(authority: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert trust_fault(f"{FAR}?sslmode=verify-full&sslrootcert={authority}") is None
    monkeypatch.setenv("PGSSLROOTCERT", str(authority))
    assert trust_fault(f"{FAR}?sslmode=verify-full") is None


def test_a_named_file_must_hold_certificates(home: Path, authority: Path) -> None:
    for content in ("", "no certificate"):
        authority.write_text(content)
        fault = trust_fault(f"{FAR}?sslmode=verify-full&sslrootcert={authority}")
        assert fault == f"sslrootcert: {authority} cannot be used: not what it must be"
    fault = trust_fault(f"{FAR}?sslmode=require&sslrootcert={home}/absent.crt")
    assert fault is not None and f"{home}/absent.crt cannot be read" in fault


def test_the_authorities_of_the_system_cannot_be_asked_for() -> None:
    fault = trust_fault(f"{FAR}?sslmode=verify-full&sslrootcert=system")
    assert fault is not None and "sslrootcert=system" in fault


def test_a_certificate_must_be_there_and_fit_its_key(home: Path, authority: Path) -> None:
    leaf = trustme.CA().issue_cert("r")
    chain, key = home / "tls.crt", home / "tls.key"
    dsn = f"{FAR}?sslmode=verify-full&sslrootcert={authority}&sslcert={chain}&sslkey={key}"
    fault = trust_fault(dsn)
    assert fault is not None and fault.startswith(f"sslcert, sslkey: {chain} and {key} cannot be")
    chain.write_bytes(b"".join(each.bytes() for each in leaf.cert_chain_pems))
    leaf.private_key_pem.write_to_path(str(key))
    assert trust_fault(dsn) is None
    trustme.CA().issue_cert("r").private_key_pem.write_to_path(str(key))
    assert trust_fault(dsn) is not None


@pytest.mark.parametrize(
    "query", ["", "?sslmode=prefer", "?sslmode=require", "?sslmode=verify-full&service=s"]
)
def test_what_needs_no_file_is_left_alone(query: str) -> None:
    assert trust_fault(f"{FAR}{query}") is None
