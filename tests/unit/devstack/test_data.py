"""What a data directory keeps between starts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from broker.devstack.data import DataDirectory
from broker.devstack.errors import DevStackError


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


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"resource_id": "r"}'])
def test_damaged_secrets_are_told(tmp_path: Path, content: str) -> None:
    data = DataDirectory(tmp_path)
    (tmp_path / "secrets.json").write_text(content)
    with pytest.raises(DevStackError, match="damaged"):
        data.secrets()
