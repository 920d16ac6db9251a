"""Servers of our own that are unfit in a way that a shared one cannot be."""

import os
import resource
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from broker.devstack.processes.ports import free_port
from broker.devstack.redis import Flavour, RedisServer
from providers.conformance import specimens
from providers.conformance.steps import SECONDS, load
from providers.redis.provider import RedisMemoryProvider
from providers.requests import Committed
from tests.fixtures.redis import RedisBackend, own_redis
from tests.integration.providers.redis_calls import (
    PROJECT,
    READS,
    WRITES,
    are_unfit,
    expect_unfit,
    refusal,
    refusals,
    until,
    works,
)

FLAVOURS = pytest.mark.parametrize("flavour", list(Flavour))


def served(server: RedisServer) -> RedisBackend:
    """Make a server the resource."""
    backend = RedisBackend(server)
    backend.reset()
    backend.mark()
    return backend


# -------------------- replicas


@contextmanager
def a_pair(flavour: Flavour) -> Iterator[tuple[RedisServer, RedisServer, int]]:
    """Start a server, another that can replicate from it as the superuser, and name the port.

    Redis does so over TLS; Valkey, which speaks none here, on a port in the clear.
    """
    plain = {} if flavour.speaks_tls else {"port": free_port()}
    with own_redis(flavour, **plain) as master:
        who = {"masteruser": master.superuser, "masterauth": master.superuser_password}
        tls = {"tls-replication": "yes", "tls-ca-cert-file": str(master.ca_file)}
        with own_redis(flavour, **(who | (tls if flavour.speaks_tls else {}))) as other:
            yield master, other, plain.get("port", master.port)


@FLAVOURS
async def test_an_attached_replica(flavour: Flavour) -> None:
    """004-38: a master with a replica is refused, and so is the replica itself."""
    with a_pair(flavour) as (master, other, port):
        backend = served(master)
        provider = RedisMemoryProvider(backend.options())
        await works(provider)
        other.execute("REPLICAOF", "localhost", port)
        await until(lambda: replicas(master) == 1)
        await expect_unfit(provider, "replica")
        told = await refusal(provider.negotiate(timeout=SECONDS))
        assert str(told) == "the server has replicas"

        replica = RedisMemoryProvider(RedisBackend(other, backend.prefix).options())
        other.set_acl("~* +@all")
        await until(lambda: other.execute("INFO", "replication")["master_link_status"] == "up")
        await expect_unfit(replica, "replica")
        await replica.close()

        other.execute("REPLICAOF", "NO", "ONE")
        await until(lambda: replicas(master) == 0)
        await works(provider)
        await provider.close()


def replicas(server: RedisServer) -> int:
    told: int = server.execute("INFO", "replication")["connected_slaves"]
    return told


# -------------------- cluster mode


@FLAVOURS
async def test_cluster_mode(flavour: Flavour) -> None:
    """004-38: one of a cluster is refused when it is connected to; that changes with a restart."""
    settings: dict[str, str | int] = {"cluster-enabled": "yes", "cluster-port": free_port()}
    with own_redis(flavour, **settings) as server:
        provider = RedisMemoryProvider(RedisBackend(server).options())
        await expect_unfit(provider, "cluster")
        await provider.close()


# -------------------- the append-only file


@contextmanager
def a_full_disk(server: RedisServer) -> Iterator[None]:
    """Let no file of the server grow meanwhile: its writes fail as on a disk without room."""
    endless = (resource.RLIM_INFINITY, resource.RLIM_INFINITY)
    resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (1, resource.RLIM_INFINITY))
    try:
        yield
    finally:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, endless)


def last_write(server: RedisServer) -> str:
    told: str = server.execute("INFO", "persistence")["aof_last_write_status"]
    return told


@FLAVOURS
async def test_an_append_only_file_that_cannot_be_written(flavour: Flavour) -> None:
    """004-38, 004-45: the failed write is told, and not the settings that let the server live on.

    A server that syncs always ends when it cannot write; so this one syncs each second meanwhile.
    """
    with own_redis(flavour) as server:
        provider = RedisMemoryProvider(served(server).options())
        await works(provider)
        server.execute("CONFIG", "SET", "appendfsync", "everysec")
        with a_full_disk(server):
            server.execute("SET", "any", "thing")
            await until(lambda: last_write(server) == "err")
            read = await refusals(provider, READS)
            are_unfit(read, "aof")
            assert {str(error) for error in read.values()} == {
                "the server could not write its append-only file: aof_last_write_status is not ok"
            }
            written = await refusals(provider, WRITES)
            are_unfit(written, "aof")
            assert {str(error) for error in written.values()} == {
                "the server takes no writes: it could not write to its disk"
            }
            are_unfit({"negotiate": await refusal(provider.negotiate(timeout=SECONDS))}, "aof")
        await until(lambda: last_write(server) == "ok")
        server.execute("CONFIG", "SET", "appendfsync", "always")
        await works(provider)
        await provider.close()


SLOW: dict[str, str | int] = {"rdb-key-save-delay": 20_000}
"""A rewrite takes 20 ms for each key; that of a test is under way for as long as it needs."""
KEYS = 3_000


def with_a_base(server: RedisServer) -> RedisBackend:
    """Make a server the resource whose file was rewritten before, and would be so for a minute."""
    backend = served(server)
    crash(server)
    assert server.execute("INFO", "persistence")["aof_base_size"] > 0
    fill(server)
    return backend


def fill(server: RedisServer) -> None:
    """Give a rewrite something to do."""
    script = "for i = 1, ARGV[1] do redis.call('SET', 'filler/' .. i, 'x') end"
    server.execute("EVAL", script, 0, KEYS)


def grow(server: RedisServer) -> None:
    """Make the file as large as it has to be for an automatic rewrite."""
    for number in range(65):
        server.execute("SET", f"large-{number}", "x" * 1024 * 1024)


def crash(server: RedisServer) -> None:
    """End a server as a crash would, a rewrite in a process of its own included; start it again."""
    threads = Path(f"/proc/{server.pid}/task").iterdir()
    children = [each for thread in threads for each in (thread / "children").read_text().split()]
    server.kill()
    for child in children:
        os.kill(int(child), signal.SIGKILL)
    server.start()


@FLAVOURS
async def test_an_append_only_file_that_was_just_switched_on(flavour: Flavour) -> None:
    """004-38: it looks healthy and keeps nothing: refused by who saw it off, and who comes anew."""
    with own_redis(flavour, **SLOW) as server:
        backend = with_a_base(server)
        seer = RedisMemoryProvider(backend.options())
        await works(seer)
        server.execute("CONFIG", "SET", "appendonly", "no")
        await expect_unfit(seer, "aof")
        server.execute("CONFIG", "SET", "appendonly", "yes")
        newcomer = RedisMemoryProvider(backend.options())
        for provider in (seer, newcomer):
            await expect_unfit(provider, "aof")
            told = await refusal(provider.ready(timeout=SECONDS))
            assert "is being rewritten" in str(told)
        server.execute("SET", "late", "acknowledged")
        crash(server)
        assert server.execute("GET", "late") is None
        for provider in (seer, newcomer):
            await works(provider)
            await provider.close()


@FLAVOURS
async def test_an_ordinary_rewrite(flavour: Flavour) -> None:
    """004-38: one that only makes the file shorter is no reason to refuse for who saw it whole."""
    with own_redis(flavour, **SLOW) as server:
        backend = with_a_base(server)
        seer = RedisMemoryProvider(backend.options())
        await works(seer)
        grow(server)
        server.execute("BGREWRITEAOF")
        assert backend.is_rewriting()
        await works(seer)
        made = specimens.create(PROJECT, specimens.memory("late"))
        assert await seer.commit(made, timeout=SECONDS) == Committed()
        assert backend.is_rewriting()
        crash(server)
        await until(lambda: not backend.is_rewriting())
        assert "late" in (await load(seer, PROJECT, "late")).heads
        await seer.close()


@FLAVOURS
async def test_the_first_automatic_rewrite(flavour: Flavour) -> None:
    """004-38: a server that began with nothing has no base to grow from, and loses nothing."""
    with own_redis(flavour, **SLOW, **{"auto-aof-rewrite-percentage": 100}) as server:
        backend = served(server)
        seer = RedisMemoryProvider(backend.options())
        await works(seer)
        fill(server)
        grow(server)
        await until(backend.is_rewriting)
        assert server.execute("INFO", "persistence")["aof_base_size"] == 0
        await works(seer)
        made = specimens.create(PROJECT, specimens.memory("late"))
        assert await seer.commit(made, timeout=SECONDS) == Committed()
        assert backend.is_rewriting()
        crash(server)
        assert "late" in (await load(seer, PROJECT, "late")).heads
        await seer.close()


@FLAVOURS
async def test_a_file_that_grows_before_its_first_rewrite_has_ended(flavour: Flavour) -> None:
    """004-38: what others write meanwhile makes it large, and it keeps nothing all the same."""
    with own_redis(flavour, **SLOW, appendonly="no") as server:
        backend = RedisBackend(server)
        backend.reset_rights()
        backend.mark()
        fill(server)
        seer, early, late = (RedisMemoryProvider(backend.options()) for _ in range(3))
        await expect_unfit(seer, "aof")
        server.execute("CONFIG", "SET", "appendonly", "yes")
        for provider in (seer, early):
            await expect_unfit(provider, "aof")
        grow(server)
        for provider in (seer, early, late):
            await expect_unfit(provider, "aof")
            told = await refusal(provider.ready(timeout=SECONDS))
            assert "is being rewritten" in str(told)
            await provider.close()
        crash(server)
        assert server.execute("DBSIZE") == 0
