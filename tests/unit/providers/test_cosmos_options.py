"""What the Cosmos adapter lets itself be told, and what it never repeats (O1 to O5, 004-36)."""

from pathlib import Path
from typing import Any

import pytest

from providers import registry
from providers.cosmos.options import CosmosOptions, options_of
from providers.cosmos.provider import CosmosMemoryProvider

KEY = "c2VjcmV0IGtleQ=="
GOOD: dict[str, Any] = {
    "endpoint": "https://account.documents.example:443",
    "database": "broker",
    "container": "memory",
    "resource_id": "cosmos-1",
    "generation": 1,
    "options_revision": "v1",
    "key": KEY,
}


def test_all_that_must_be_told() -> None:
    """004-36, O2: the rest has defaults; the schema version is not among the options."""
    options = CosmosOptions(**{name: GOOD[name] for name in GOOD if name != "key"})
    assert options.key is None
    assert options.marker_ms == 30_000
    adapter = registry.adapter("cosmos.memory")
    assert (adapter.version, adapter.options_schema_version) == ("1.0.0", 1)
    assert isinstance(adapter.open(GOOD), CosmosMemoryProvider)


@pytest.mark.parametrize("missing", sorted(set(GOOD) - {"key"}))
def test_a_part_is_not_enough(missing: str) -> None:
    """O5: an option that must be there is named when it is not."""
    given = {name: value for name, value in GOOD.items() if name != missing}
    with pytest.raises(ValueError, match=f"the option {missing} is missing"):
        registry.adapter("cosmos.memory").open(given)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("endpoint", "http://account.documents.example"),
        ("endpoint", "https://user@account.documents.example"),
        ("endpoint", "https://account.documents.example/path"),
        ("endpoint", "https://account.documents.example?a=b"),
        ("endpoint", "https://account.documents.example#a"),
        ("endpoint", "https://account.documents.example:x"),
        ("endpoint", "https://account.documents.example:0"),
        ("endpoint", "https://"),
        ("endpoint", "account.documents.example"),
        ("database", ""),
        ("database", "a/b"),
        ("container", "a?b"),
        ("container", "a " * 2),
        ("container", "x" * 256),
        ("resource_id", "a b"),
        ("generation", 0),
        ("options_revision", ""),
        ("key", "no base64!"),
        ("key", ""),
        ("pool_size", 0),
        ("pool_size", 201),
        ("connect_ms", 0),
        ("marker_ms", -1),
        ("marker_ms", 30_001),
        ("ca_file", "/nowhere/ca.crt"),
    ],
)
def test_what_is_not_valid_is_named(name: str, value: object) -> None:
    """O3: an endpoint is https, a host and a port; every option has its range."""
    with pytest.raises(ValueError, match=f"the option {name}") as refused:
        CosmosOptions(**(GOOD | {name: value}))
    assert KEY not in str(refused.value)
    if name == "key" and value:
        assert str(value) not in str(refused.value)


def test_authorities_must_be_pem(tmp_path: Path) -> None:
    path = tmp_path / "ca.crt"
    path.write_text("none")
    with pytest.raises(ValueError, match="is not PEM"):
        CosmosOptions(**(GOOD | {"ca_file": str(path)}))


def test_no_key_is_shown() -> None:
    """004-36: neither by the options nor by the provider."""
    options = CosmosOptions(**GOOD)
    assert KEY not in repr(options)
    assert KEY not in repr(CosmosMemoryProvider(options))


def test_an_address_stands_for_options() -> None:
    address = "cosmos+https://:c2VjcmV0IGtleQ%3D%3D@host.example:8081/a%20b/memory"
    options = options_of(address, "r", 2)
    assert (options.endpoint, options.database) == ("https://host.example:8081", "a b")
    assert (options.container, options.key, options.generation) == ("memory", KEY, 2)
    assert options_of("cosmos+https://host.example/a/b", "r", 1).key is None


@pytest.mark.parametrize(
    "address",
    [
        "https://:c2VjcmV0IGtleQ==@host.example/a/b",
        "cosmos+https://:c2VjcmV0IGtleQ==@host.example/a",
        "cosmos+https://:c2VjcmV0IGtleQ==@host.example/a/b/c",
        "cosmos+https://user:c2VjcmV0IGtleQ==@host.example/a/b",
        "cosmos+https://:c2VjcmV0IGtleQ==@host.example/a/b?c=d",
        "cosmos+https://:c2VjcmV0IGtleQ==@host.example/a/b?c",
        "cosmos+https://:c2VjcmV0IGtleQ==@host.example/a/b#c",
        "cosmos+https://:c2VjcmV0IGtleQ==@/a/b",
    ],
)
def test_another_address_is_refused_without_its_key(address: str) -> None:
    with pytest.raises(ValueError, match=r"the (address|option)") as refused:
        options_of(address, "r", 1)
    assert KEY not in str(refused.value)
