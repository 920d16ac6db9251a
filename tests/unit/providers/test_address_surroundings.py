"""Addresses of PostgreSQL: where a password may travel."""

import pytest

from providers.address import is_guarded

GUARDED = [
    "postgresql://u:p@127.0.0.1/db",
    "postgresql://u:p@[::1]:5432/db",
    "postgresql://u:p@localhost,127.0.0.1:1/db",
    "postgresql://u:p@/db",
    "postgresql://u:p@/db?host=/run/postgresql",
    "postgresql://u:p@db.example/db?sslmode=verify-full",
    "postgresql://u:p@/db?service=s&sslmode=verify-full",
]
OPEN = [
    "postgresql://u:p@db.example/db",
    "postgresql://u:p@db.example/db?sslmode=require",
    "postgresql://u:p@db.example/db?sslmode=verify-full&sslmode=disable",
    "postgresql://u:p@localhost,db.example/db",
    "postgresql://u:p@localhost/db?host=db.example",
    "postgresql://u:p@/db?service=s",
]


@pytest.mark.parametrize("dsn", GUARDED)
def test_guarded(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """004-101: this machine, or a server that is verified."""
    monkeypatch.delenv("PGHOST", raising=False)
    assert is_guarded(dsn)


@pytest.mark.parametrize("dsn", OPEN)
def test_open_to_whoever_is_on_the_way(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """004-101: any host elsewhere, and what a file elsewhere says."""
    monkeypatch.delenv("PGHOST", raising=False)
    assert not is_guarded(dsn)


def test_the_environment_names_the_host_that_an_address_leaves_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """004-101: the driver takes it from there, so it counts."""
    for host, guarded in (("db.example", False), ("localhost,db.example", False), ("[::1]", True)):
        monkeypatch.setenv("PGHOST", host)
        assert is_guarded("postgresql://u:p@/db") is guarded
        assert is_guarded("postgresql:///db?user=u&password=p&host=") is guarded
        assert is_guarded("postgresql://u:p@127.0.0.1/db")
