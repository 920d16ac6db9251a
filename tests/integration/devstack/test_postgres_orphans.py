"""Clusters that nobody can use any more go; all others stay."""

from __future__ import annotations

import fcntl
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from broker.devstack.postgres.account import Account
from broker.devstack.postgres.orphans import remove_orphans
from broker.devstack.postgres.placement import settle
from broker.devstack.processes.errors import ServerStartError

ACCOUNT = Account.for_this_process()


@pytest.fixture
def workspace() -> Iterator[Path]:
    """A directory that everybody can enter."""
    path = Path(tempfile.mkdtemp(prefix="orphans-test-")).resolve()
    path.chmod(0o755)
    (path / "closed").mkdir(mode=0o700)
    yield path
    shutil.rmtree(path)


def relocated(workspace: Path, name: str) -> tuple[Path, Path]:
    """A data directory that the server's account cannot enter, and where its cluster is."""
    data = workspace / "closed" / name
    place = settle(data, ACCOUNT, workspace / "fallback")
    assert place.is_relative_to(workspace / "fallback")
    (place / "cluster").mkdir()
    (place / "cluster" / "file").touch()
    return data, place


def sweep(workspace: Path) -> int:
    return remove_orphans(ACCOUNT, workspace / "fallback")


def test_the_cluster_of_a_deleted_directory_goes(workspace: Path) -> None:
    data, place = relocated(workspace, "gone")
    _, kept = relocated(workspace, "kept")
    assert sweep(workspace) == 0
    outside = workspace / "outside"
    outside.mkdir()
    (outside / "file").touch()
    (place / "cluster" / "link").symlink_to(outside)
    shutil.rmtree(data)
    assert sweep(workspace) == 1
    assert not place.exists()
    assert (kept / "cluster" / "file").exists()
    assert (outside / "file").exists()


def test_the_cluster_of_a_moved_directory_stays(workspace: Path) -> None:
    data, place = relocated(workspace, "before")
    moved = data.with_name("after")
    data.rename(moved)
    assert sweep(workspace) == 0
    assert settle(moved, ACCOUNT, workspace / "fallback") == place
    (moved / "origin").unlink()
    assert sweep(workspace) == 0
    shutil.rmtree(moved)
    assert sweep(workspace) == 1


def test_a_cluster_in_use_stays(workspace: Path) -> None:
    data, place = relocated(workspace, "used")
    shutil.rmtree(data)
    with (place / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert sweep(workspace) == 0
    assert sweep(workspace) == 1


@pytest.mark.parametrize("way", ["foreign", "foreign note", "open", "linked", "noteless", "named"])
def test_what_the_launcher_did_not_make_stays(workspace: Path, way: str) -> None:
    data, place = relocated(workspace, "strange")
    shutil.rmtree(data)
    match way:
        case "foreign":
            ACCOUNT.own(place)
        case "foreign note":
            ACCOUNT.own(place / "origin")
        case "open":
            place.chmod(0o777)
        case "linked":
            elsewhere = workspace / "elsewhere"
            place.rename(elsewhere)
            place.symlink_to(elsewhere)
        case "noteless":
            (place / "origin").unlink()
        case _:
            place.rename(place.with_name("precious"))
    assert sweep(workspace) == 0
    assert [*workspace.rglob("cluster/file")]


def test_one_start_removes_only_so_many(workspace: Path) -> None:
    for number in range(3):
        shutil.rmtree(relocated(workspace, str(number))[0])
    assert remove_orphans(ACCOUNT, workspace / "fallback", limit=2) == 2
    assert len([*(workspace / "fallback").iterdir()]) == 1


def test_a_cluster_that_is_gone_is_told(workspace: Path) -> None:
    data, place = relocated(workspace, "lost")
    shutil.rmtree(place)
    with pytest.raises(ServerStartError, match="to begin anew"):
        settle(data, ACCOUNT, workspace / "fallback")


def test_a_directory_that_the_account_can_enter_keeps_its_cluster(workspace: Path) -> None:
    """For an ordinary user that is every directory, so there is nothing to sweep."""
    assert settle(workspace / "open", ACCOUNT, workspace / "fallback") == workspace / "open"
    if not ACCOUNT.is_other:
        data = workspace / "closed" / "mine"
        assert settle(data, ACCOUNT, workspace / "fallback") == data
    assert sweep(workspace) == 0


if not ACCOUNT.is_other:  # the tests above have no subject: only root's clusters lie elsewhere
    for _name in [each for each in globals() if each.startswith("test_") and "enter" not in each]:
        del globals()[_name]
