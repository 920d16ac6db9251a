"""Why the default user has to have rights: how a server reads back what scripts wrote (004-38).

The server is started by hand here, since the launcher never makes one that would lose writes.
"""

import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
import redis

from broker.devstack.redis import Flavour
from broker.devstack.redis.binaries import find

NOBODY = "reset"
NOBODY_WITH_RIGHTS = "reset off ~* &* +@all"
SCRIPT = "redis.call('HSET', 'a', 'f', 'v') redis.call('HSET', 'b', 'f', 'v')"


@contextmanager
def started(flavour: Flavour, folder: Path, default: str) -> Iterator[redis.Redis]:
    """Run a server on what the folder holds, and end it as a crash would."""
    config = folder / "server.conf"
    path = folder / "s"
    config.write_text(
        f"port 0\nunixsocket {path}\ndir {folder}\nsave ''\nappendonly yes\nappendfsync always\n"
        f"user default {default}\nuser admin on nopass ~* &* +@all\n"
    )
    binary = find(flavour)
    command = [binary.name, str(config)]
    process = subprocess.Popen(command, executable=binary.path, stdout=subprocess.DEVNULL)
    try:
        with redis.Redis(unix_socket_path=str(path), username="admin", password="any") as client:
            wait_for(client, process)
            yield client
    finally:
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        path.unlink(missing_ok=True)


def wait_for(client: redis.Redis, process: subprocess.Popen[bytes]) -> None:
    while process.poll() is None:
        with suppress(redis.ConnectionError):
            client.ping()
            return
        time.sleep(0.01)
    pytest.fail("the server ended")


def read_back(flavour: Flavour, default: str) -> tuple[object, object]:
    """Return what a server knows after a crash of what a script and a command wrote."""
    with tempfile.TemporaryDirectory(prefix="broker-test-loading-") as name:
        folder = Path(name)
        with started(flavour, folder, default) as client:
            client.eval(SCRIPT, 0)
            client.hset("c", "f", "v")
        with started(flavour, folder, default) as client:
            return client.hget("a", "f"), client.hget("c", "f")


def test_redis_leaves_out_what_the_default_user_might_not_write() -> None:
    """004-38: what a script wrote was acknowledged and synced, and is gone; a command's is not."""
    assert read_back(Flavour.REDIS, NOBODY) == (None, b"v")


@pytest.mark.parametrize(
    ("flavour", "default"),
    [
        (Flavour.REDIS, NOBODY_WITH_RIGHTS),
        (Flavour.VALKEY, NOBODY_WITH_RIGHTS),
        (Flavour.VALKEY, NOBODY),
    ],
)
def test_nothing_is_left_out(flavour: Flavour, default: str) -> None:
    """004-38: where that user has every right, though nobody can be it; and with Valkey always."""
    assert read_back(flavour, default) == (b"v", b"v")
