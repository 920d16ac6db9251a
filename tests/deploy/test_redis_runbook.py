"""The runbook's commands for Redis do what it says, on a server of the shipped files."""

import secrets
import shutil
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path

import pytest

from broker.config import read_secret
from providers.conformance import specimens
from providers.conformance.steps import SECONDS, load
from providers.errors import (
    NegotiationRefusedError,
    OutcomeUnknownError,
    ResourceMismatchError,
)
from providers.model import ProjectKey, WriteSet
from providers.redis.options import RedisOptions
from providers.redis.provider import RedisMemoryProvider
from providers.requests import Committed, Replayed
from tests.deploy.redis_operator import USERS, RedisOperator

PROJECT = ProjectKey("t1", "p1")


@pytest.fixture
def operator(tmp_path: Path) -> Iterator[RedisOperator]:
    """An operator who has set a server up and written the marker."""
    made = RedisOperator(tmp_path)
    made.passwords = {user: secrets.token_hex(16) for user in USERS}
    made.write_users()
    try:
        made.start()
        told = made.run("redis-marker", OPERATOR_PASSWORD=made.passwords["operator"])
        assert "the marker is written: knowledge-redis-1, generation 1" in told
        yield made
    finally:
        made.close()


@asynccontextmanager
async def serving(options: RedisOptions) -> AsyncIterator[RedisMemoryProvider]:
    provider = RedisMemoryProvider(options)
    try:
        await provider.negotiate(timeout=SECONDS)
        yield provider
    finally:
        await provider.close()


def memory(name: str) -> WriteSet:
    return specimens.create(PROJECT, specimens.memory(name))


async def kept(operator: RedisOperator, *names: str, generation: int = 1) -> set[str]:
    """Return which of these records are there."""
    async with serving(operator.options(generation)) as provider:
        return set((await load(provider, PROJECT, *names)).heads)


async def test_server_of_the_shipped_files_serves(operator: RedisOperator) -> None:
    """004-37, 004-38: both files as they are, but for passwords, paths and the port."""
    async with serving(operator.options()) as provider:
        for name in ("r1", "r2"):
            assert await provider.commit(memory(name), timeout=SECONDS) == Committed()
    asked = operator.run("redis-ask", operator.passwords["admin"] + "\n", REDISCLI_AUTH="wrong")
    assert "redis_version:" in asked
    assert operator.run("redis-count") == "2\n"
    assert operator.run("redis-memory") == "OK\n"
    assert operator.shell("admin CONFIG GET maxmemory").split()[1] == str(12 * 1024**3)


def test_hash_is_that_of_the_password_as_it_is_read(tmp_path: Path) -> None:
    operator = RedisOperator(tmp_path)
    try:
        told = operator.run("redis-password")
    finally:
        operator.close()
    password = read_secret(tmp_path / "redis-password")
    assert len(password) == 64
    assert told == sha256(password.encode()).hexdigest() + "\n"
    assert (tmp_path / "redis-password").stat().st_mode & 0o777 == 0o600


async def test_password_is_rotated_without_a_gap(operator: RedisOperator) -> None:
    old, new = operator.options(), operator.options(password=secrets.token_hex(16))
    hashes = {
        f"{name}_HASH": sha256(str(each.password).encode()).hexdigest()
        for name, each in (("OLD", old), ("NEW", new))
    }
    async with serving(old) as provider:
        assert "OK" in operator.run("redis-second-password", **hashes)
        assert await provider.commit(memory("r1"), timeout=SECONDS) == Committed()
    async with serving(new):
        pass
    assert "OK" in operator.run("redis-first-password-gone", **hashes)
    with pytest.raises(NegotiationRefusedError) as refused:
        async with serving(old):
            pass
    assert refused.value.fact == "rights"
    async with serving(new):
        pass
    assert operator.users.read_text().count("#") == len(USERS)


async def test_restored_file_serves_under_the_next_generation(operator: RedisOperator) -> None:
    async with serving(operator.options()) as provider:
        assert await provider.commit(memory("kept"), timeout=SECONDS) == Committed()
        assert operator.run("redis-backup") == "OK\nOK\n"
        assert await provider.commit(memory("forgotten"), timeout=SECONDS) == Committed()
    operator.stop()
    shutil.rmtree(operator.data / "appendonlydir")
    shutil.copytree(operator.room / "redis-backup", operator.data / "appendonlydir")
    operator.start()
    operator.run("redis-raise-generation", operator.passwords["operator"] + "\n")
    with pytest.raises(ResourceMismatchError):
        await kept(operator, "kept")
    assert await kept(operator, "kept", "forgotten", generation=2) == {"kept"}


async def test_default_user_gets_its_rights_back(operator: RedisOperator) -> None:
    """004-38: what was written meanwhile is there, also after a restart."""
    async with serving(operator.options()) as provider:
        await provider.ready(timeout=SECONDS)  # opens what calls go over
        made = memory("r1")
        operator.shell("admin ACL SETUSER default reset")
        with pytest.raises(OutcomeUnknownError):
            await provider.commit(made, timeout=SECONDS)
        assert (await load(provider, PROJECT, "r1")).heads  # reads on open connections go on
        assert operator.run("redis-default-user") == "OK\n"
        assert await provider.commit(made, timeout=SECONDS) == Replayed(made.receipt)
    operator.stop()
    operator.start()
    assert await kept(operator, "r1") == {"r1"}


async def test_restart_without_the_rights_is_mended_by_another(operator: RedisOperator) -> None:
    """004-38: the file still has what the server left out of memory."""
    async with serving(operator.options()) as provider:
        assert await provider.commit(memory("r1"), timeout=SECONDS) == Committed()
    whole = operator.users.read_text()
    operator.users.write_text(
        whole.replace("user default reset off ~* &* +@all", "user default reset")
    )
    operator.stop()
    operator.start()
    assert operator.run("redis-count") == "0\n"
    operator.users.write_text(whole)
    operator.stop()
    operator.start()
    assert await kept(operator, "r1") == {"r1"}
    assert operator.run("redis-count") == "1\n"
