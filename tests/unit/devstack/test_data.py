"""What a data directory keeps between starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.devstack.data import DataDirectory
from broker.devstack.errors import DevStackError
from broker.devstack.provider import Provider


def test_secrets_are_drawn_once(tmp_path: Path) -> None:
    first = DataDirectory(tmp_path / "data").secrets()
    assert DataDirectory(tmp_path / "data").secrets() == first


def test_a_directory_from_before_the_events_service_gets_its_password(tmp_path: Path) -> None:
    drawn = DataDirectory(tmp_path).secrets()
    file = tmp_path / "secrets.json"
    kept = json.loads(file.read_text())
    del kept["events_password"]
    file.write_text(json.dumps(kept))
    found = DataDirectory(tmp_path).secrets()
    assert found.resource_id == drawn.resource_id
    assert found.runtime_password == drawn.runtime_password
    assert found.events_password not in {"", drawn.events_password}
    assert DataDirectory(tmp_path).secrets() == found


def test_a_directory_stays_with_its_provider(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path / "data")
    for _ in range(2):
        data.keep_to(Provider.REDIS)
    with pytest.raises(DevStackError, match="begun with --provider redis"):
        data.keep_to(Provider.POSTGRES)
    data.keep_to(Provider.REDIS)


def test_a_directory_from_before_redis_keeps_memory_in_postgres(tmp_path: Path) -> None:
    data = DataDirectory(tmp_path)
    data.secrets()
    with pytest.raises(DevStackError, match="begun with --provider postgres"):
        data.keep_to(Provider.REDIS)
    data.keep_to(Provider.POSTGRES)


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"resource_id": "r"}'])
def test_damaged_secrets_are_told(tmp_path: Path, content: str) -> None:
    data = DataDirectory(tmp_path)
    (tmp_path / "secrets.json").write_text(content)
    with pytest.raises(DevStackError, match="damaged"):
        data.secrets()
