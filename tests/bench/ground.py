"""The servers that all cases stand on, on a real disk."""

import asyncio
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from broker.__main__ import ONE_POLLER
from broker.devstack.postgres import PostgresServer
from broker.devstack.redis import Flavour, RedisServer
from tests.bench.cases import Ground
from tests.fixtures.postgres import PostgresBackend

POSTGRES: dict[str, str | int] = {
    "max_connections": 300,
    "shared_buffers": "512MB",
    "max_wal_size": "4GB",
    "checkpoint_timeout": "30min",
    "fsync": "on",
    "synchronous_commit": "on",
}
REDIS: dict[str, str | int] = {"auto-aof-rewrite-percentage": 0}


@contextmanager
def ground() -> Iterator[Ground]:
    """Start the servers; they end, and their data go, when this is left.

    All that is started meanwhile and speaks gRPC polls as the broker does.
    """
    os.environ.setdefault("GRPC_EXPERIMENTS", ONE_POLLER)
    with tempfile.TemporaryDirectory(prefix="broker-bench-") as place:
        directory = Path(place)
        # The database server may run under another account, which has to pass through.
        directory.chmod(0o711)
        with (
            PostgresServer(directory / "postgres", settings=POSTGRES) as postgres,
            RedisServer(directory / "redis", flavour=Flavour.REDIS, settings=REDIS) as redis,
        ):
            backend = PostgresBackend(postgres.superuser_dsn, postgres)
            asyncio.run(backend.make_role())
            yield Ground(backend, redis, directory)
