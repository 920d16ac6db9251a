"""What the broker is started with."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

from broker.config import load_settings
from broker.devstack import playground
from broker.devstack.database import Access, Place
from broker.devstack.memory import in_postgres
from broker.devstack.owner import document
from broker.devstack.settings import StackSettings, to_toml
from broker.safety import UnsafeConfigurationError, verify


def settings(embeddings: str = "none") -> StackSettings:
    place = Place(
        Access(
            migrator_dsn="postgresql://m:secret@127.0.0.1:9/d",
            runtime_dsn="postgresql://r@127.0.0.1:9/d",
        ),
        database="d",
        resource_id="dev-1",
        generation=1,
    )
    return StackSettings(
        listen="127.0.0.1:7401",
        owner_address="127.0.0.1:9",
        events_address="127.0.0.1:8",
        jwks_file=Path('/a "b"\\c/jwks.json'),
        place=place,
        memory=in_postgres(place),
        catalog=document.parse(playground.template()),
        embeddings=embeddings,
    )


def test_toml_says_what_the_settings_say() -> None:
    served = settings().served()
    assert tomllib.loads(to_toml(served)) == served


def test_toml_survives_unusual_characters() -> None:
    odd = {"table": {"text": 'a"b\\c\n\x7fé😀', "flag": True, "list": ["a", "b"], "number": 1.5}}
    assert tomllib.loads(to_toml(odd)) == odd


def test_the_broker_gets_neither_the_migrator_nor_a_second_catalog() -> None:
    served = settings().served()
    assert "secret" not in to_toml(served)
    (provider,) = served["providers"]
    assert provider["provider_id"] == "postgres.native-memory"
    assert provider["advertised_capabilities"] == list(
        settings().catalog.catalog["postgres.native-memory"].capabilities
    )
    assert "secret" not in repr(settings())


@pytest.mark.parametrize("embeddings", ["none", "local"])
def test_embeddings_are_as_asked_for(embeddings: str, tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text(to_toml(settings(embeddings).served()))
    assert load_settings(file).embeddings.provider == embeddings


def test_the_broker_takes_the_settings_in_development_only(tmp_path: Path) -> None:
    file = tmp_path / "broker.toml"
    file.write_text(to_toml(settings().served()))
    loaded = load_settings(file)
    verify(loaded, development=True)
    with pytest.raises(UnsafeConfigurationError, match=r"dev\.invalid"):
        verify(loaded, development=False)
