"""Where a cluster lives on disk.

An ordinary user's cluster lives in the data directory asked for. Root's server runs as
``nobody``, who may be unable to get there (a project below ``/root``, say). No folder of the
user's is ever opened up for that. Instead:

1. a data directory that holds the link ``relocated`` is followed to where it points;
2. otherwise, one that root alone can write to and ``nobody`` can enter is used as it is;
3. otherwise a place is made below the fallback directory, and ``relocated`` is set to it.

The link keeps the data between starts, also when the project is moved. Deleting the data
directory gives a fresh cluster next time; the file ``origin`` tells whose the old one was, so that
``orphans`` can remove it. Where the file system allows, the data directory holds a hard link to
that file: a directory that was moved is told from one that is gone.
"""

from __future__ import annotations

import os
import stat
import tempfile
from contextlib import suppress
from pathlib import Path

from broker.devstack.postgres.account import Account
from broker.devstack.processes.errors import ServerStartError

FALLBACK_DIRECTORY = Path("/var/lib/knowledge-broker-dev")
CLUSTER = "cluster"
POINTER = "relocated"
ORIGIN = "origin"
LOCK = "lock"
PREFIX = "cluster-"


def settle(asked: Path, account: Account, fallback: Path) -> Path:
    """Returns the directory that holds the cluster, and makes it when it is missing.

    Args:
        asked: The data directory the caller named.
        account: The account the server runs under.
        fallback: Where root puts clusters that ``asked`` is no place for.

    Raises:
        ServerStartError: There is a cluster at ``asked`` that the account cannot use.
    """
    _make(asked, 0o711 if account.is_other else 0o700)
    if not account.is_other:
        return asked
    pointer = asked / POINTER
    if pointer.is_symlink():
        return _relocated(asked, pointer)
    if is_safe(asked) and account.can_enter(asked):
        return asked
    if (asked / CLUSTER).exists():
        raise ServerStartError(
            f"{asked} holds a cluster that root cannot serve as uid {account.uid}: the directory"
            " must belong to root alone and be open for others to pass through"
        )
    return _relocate(asked, pointer, root_directory(fallback, account))


def root_directory(path: Path, account: Account) -> Path:
    """Makes, or checks, a root-owned directory that the server's account can enter."""
    _make(path, 0o755)
    _safe_for_root(path)
    if not account.can_enter(path):
        raise ServerStartError(f"uid {account.uid} cannot enter {path}")
    return path


def _make(path: Path, mode: int) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        path.mkdir()
        path.chmod(mode)


def is_safe(path: Path) -> bool:
    """Tells whether it is a directory, no link to one, that this account alone can write to."""
    status = path.lstat()
    return (
        stat.S_ISDIR(status.st_mode)
        and status.st_uid == os.geteuid()
        and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    )


def _safe_for_root(path: Path) -> Path:
    if not path.is_absolute() or not is_safe(path):
        raise ServerStartError(f"{path} is not a directory that root alone can write to")
    return path


def _relocated(asked: Path, pointer: Path) -> Path:
    """Follows the link, and notes from where."""
    place = pointer.readlink()
    try:
        _safe_for_root(place)
    except FileNotFoundError:
        raise ServerStartError(
            f"the cluster of {asked} is gone from {place}; delete {asked} to begin anew"
        ) from None
    _note(place / ORIGIN, asked)
    return place


def _note(origin: Path, asked: Path) -> None:
    """Writes down whose cluster it is, and links the note into the data directory."""
    note = os.fsencode(asked) + b"\n"
    if not origin.exists() or origin.read_bytes() != note:
        origin.touch(0o600)
        origin.write_bytes(note)  # in place: the link stays one
    with suppress(OSError):  # there already, or on another file system
        os.link(origin, asked / ORIGIN)


def _relocate(asked: Path, pointer: Path, fallback: Path) -> Path:
    place = Path(tempfile.mkdtemp(prefix=PREFIX, dir=fallback))
    place.chmod(0o711)
    try:
        pointer.symlink_to(place)
    except FileExistsError:  # another launcher was faster
        place.rmdir()
        return _relocated(asked, pointer)
    _note(place / ORIGIN, asked)
    return place
