"""Removes clusters that ``placement`` put into the fallback directory and nobody can use any more.

A cluster is an orphan when the data directory that its ``origin`` names is gone, that directory
was not moved either, and no live process holds the cluster's lock. Only what root itself has made
there is looked at, and no symbolic link is followed.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import stat
from contextlib import suppress
from pathlib import Path

from broker.devstack.postgres.account import Account
from broker.devstack.postgres.cluster import Cluster
from broker.devstack.postgres.placement import (
    CLUSTER,
    FALLBACK_DIRECTORY,
    LOCK,
    ORIGIN,
    PREFIX,
    is_safe,
)

AT_ONCE = 16
"""So many go at one start: a start must not take long because of what others left behind."""


def remove_orphans(
    account: Account, fallback: Path = FALLBACK_DIRECTORY, *, limit: int | None = AT_ONCE
) -> int:
    """Removes orphans, and returns how many. What cannot be removed now stays for another time.

    Args:
        account: The account the servers run under; only root's clusters are ever elsewhere.
        fallback: Where root keeps clusters.
        limit: Remove no more than this many; None removes all.
    """
    removed = 0
    with suppress(OSError):
        if not account.is_other or not is_safe(fallback):
            return 0
        for place in sorted(fallback.glob(f"{PREFIX}*")):
            if removed == limit:
                break
            removed += _is_orphan(place) and _remove(place, account)
    return removed


def _is_orphan(place: Path) -> bool:
    origin = place / ORIGIN
    try:
        if not is_safe(place):
            return False
        status = origin.lstat()
        if not stat.S_ISREG(status.st_mode) or status.st_uid != os.geteuid():
            return False
        if status.st_nlink > 1:  # the data directory is there, wherever it was moved to
            return False
        asked = Path(os.fsdecode(origin.read_bytes().removesuffix(b"\n")))
    except OSError:  # another launcher is at work here
        return False
    return asked.is_absolute() and not os.path.lexists(asked)


def _remove(place: Path, account: Account) -> bool:
    """Removes a cluster while holding its lock; tells whether it went."""
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        lock = os.open(place / LOCK, flags, 0o600)
    except OSError:
        return False
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        Cluster(place, account, place).sockets.drop()
        # The origin goes last: were it gone, a removal cut short would never be taken up again.
        if (place / CLUSTER).exists():
            shutil.rmtree(place / CLUSTER)
        shutil.rmtree(place)
    except OSError:
        return False
    finally:
        os.close(lock)
    return True
