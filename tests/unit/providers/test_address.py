"""Which PostgreSQL addresses may carry a password (architecture 6.5)."""

import pytest

from providers.address import is_guarded, is_postgres


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://role:secret@127.0.0.1:5432/name",
        "postgresql://role@[::1]:5432/name",
        "postgresql://role@localhost/name",
        "postgresql://role@localhost:1,127.0.0.2:2/name",
        "postgresql:///name?host=/run/postgresql",
        "postgresql:///name",
        "postgresql://db.example/name?sslmode=verify-full",
    ],
)
def test_nobody_reads_along(dsn: str) -> None:
    assert is_guarded(dsn)
    assert is_postgres(dsn)


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://db.example/name",
        "postgresql://db.example/name?sslmode=require",
        "postgresql://db.example/name?sslmode=verify-full&sslmode=disable",
        "postgresql://10.0.0.1:5432/name",
        "postgresql://[fe80::1]:5432/name",
        "postgresql://localhost.example/name",
        "postgresql://localhost,db.example/name",
        "postgresql://localhost@db.example/name",
        "postgresql://db.example/name?host=127.0.0.1",
        "postgresql://127.0.0.1/name?host=db.example",
        "postgresql:///name?host=/run/postgresql,db.example",
    ],
)
def test_somebody_could_read_along(dsn: str) -> None:
    assert not is_guarded(dsn)


@pytest.mark.parametrize("dsn", ["mysql://127.0.0.1/name", "host=127.0.0.1", "", "/run"])
def test_addresses_of_other_kinds(dsn: str) -> None:
    assert not is_postgres(dsn)
