"""No error tells content, a name, a user or a password, and neither does its cause (004-101)."""

import logging
import traceback
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from broker.devstack.processes.ports import free_port
from providers.conformance import specimens
from providers.conformance.delivery_steps import acquire, effect_of, pending, release
from providers.conformance.steps import SECONDS, candidates, load, page, search
from providers.conformance.transfer_steps import export, graves
from providers.errors import (
    NegotiationRefusedError,
    OutcomeUnknownError,
    ProviderClosedError,
    ProviderError,
    ProviderTimeoutError,
    ProviderUnavailableError,
    ResourceMismatchError,
    StorageFullError,
    StoredDataInvalidError,
    WriteSetInvalidError,
)
from providers.model import Claim, ProjectKey, WriteSet
from providers.redis.keys import base_key, marker_key, project_digest
from providers.redis.provider import RedisMemoryProvider
from providers.redis.resource import init_resource
from providers.redis.rights import acl_of
from tests.fixtures.redis import RedisBackend

CANARY = "qxqx"
USER, PASSWORD = f"{CANARY}-user", f"{CANARY}-password"
PROJECT = ProjectKey(f"{CANARY}-tenant", f"{CANARY}-project")
RECORD, AGENT, RUN, KEY = (f"{CANARY}-{each}" for each in ("record", "agent", "run", "key"))
FIRST = specimens.memory(
    RECORD,
    agent_id=AGENT,
    content=specimens.content(
        f"{CANARY} text", type=f"{CANARY} type", title=f"{CANARY} title", tags=(f"{CANARY} tag",)
    ),
    facet=specimens.facet(subject=f"{CANARY} subject", metadata={CANARY: CANARY}),
    reason=f"{CANARY} reason",
)
EFFECT = replace(specimens.effect(1, run_id=RUN, decision_id=RECORD), receipt_id=f"{CANARY}-effect")
MADE = specimens.keyed(
    specimens.create(PROJECT, FIRST, claims=(Claim(KEY, RECORD),), effect=EFFECT),
    key=f"{CANARY}-idempotency",
    outcome={CANARY: CANARY},
)
NO_RIGHTS = ("config|get", "hget", "zrem", "info", "script|load", "select", "acl|dryrun", "time")


def updated() -> WriteSet:
    following = specimens.put(specimens.after(FIRST), over=FIRST)
    claims = (Claim(KEY, RECORD, held_by=RECORD),)
    return specimens.write(PROJECT, following, claims=claims, graph_expected=0)


class Ears:
    """Calls a provider in every way and keeps what it is refused with."""

    def __init__(self, backend: RedisBackend) -> None:
        self.backend = backend
        self.run = backend.server.execute
        self.base = base_key(backend.prefix, project_digest(PROJECT))
        self.heard: list[ProviderError] = []
        self.made: list[RedisMemoryProvider] = []
        self.provider = self.another()

    def another(self, **given: object) -> RedisMemoryProvider:
        """Return a provider that logs in as the user with the telling name."""
        known = {"username": USER, "password": PASSWORD, "pool_ready": 1}
        self.made.append(RedisMemoryProvider(self.backend.options(**(known | given))))
        return self.made[-1]

    async def hear(self, work: Awaitable[object]) -> None:
        """Keep what a call is refused with."""
        try:
            await work
        except ProviderError as error:
            self.heard.append(error)

    async def hear_all(self, provider: RedisMemoryProvider | None = None) -> None:
        """Negotiate and make every call."""
        asked = provider or self.provider
        for call in CALLS:
            await self.hear(call(asked))

    async def seed(self) -> None:
        self.backend.empty()
        await self.provider.commit(MADE, timeout=SECONDS)
        await acquire(self.provider, PROJECT, EFFECT, lease_ms=1)


CALLS: tuple[Callable[[RedisMemoryProvider], Awaitable[object]], ...] = (
    lambda it: it.negotiate(timeout=SECONDS),
    lambda it: it.ready(timeout=SECONDS),
    lambda it: load(
        it,
        PROJECT,
        RECORD,
        receipt=MADE.receipt.key,
        keys=(KEY,),
        graph=True,
        stream_run_id=RUN,
        chain_from=RECORD,
    ),
    lambda it: page(it, PROJECT, RECORD, agent_id=AGENT),
    lambda it: search(it, PROJECT, agent_id=AGENT, text=CANARY, tags=(f"{CANARY} tag",)),
    lambda it: candidates(it, PROJECT, agent_id=AGENT, run_id=RUN),
    lambda it: export(it, PROJECT, agent_id=AGENT),
    lambda it: export(it, PROJECT, RECORD, agent_id=AGENT),
    lambda it: graves(it, PROJECT, KEY),
    lambda it: effect_of(it, PROJECT, EFFECT),
    lambda it: pending(it, PROJECT, run_id=RUN),
    lambda it: release(it, PROJECT, EFFECT, f"{CANARY} token"),
    lambda it: acquire(it, PROJECT, EFFECT, lease_ms=1),
    lambda it: it.commit(MADE, timeout=SECONDS),
    lambda it: it.commit(updated(), timeout=SECONDS),
)


@pytest.fixture
async def ears(redis_backend: RedisBackend) -> AsyncIterator[Ears]:
    rules = acl_of(redis_backend.prefix).split()
    redis_backend.server.execute("ACL", "SETUSER", USER, "reset", "on", f">{PASSWORD}", *rules)
    made = Ears(redis_backend)
    await made.seed()
    yield made
    for provider in made.made:
        await provider.close()
    redis_backend.server.execute("ACL", "DELUSER", USER)


def set_rules(ears: Ears, rules: str) -> None:
    ears.run("ACL", "SETUSER", USER, "reset", "on", f">{PASSWORD}", *rules.split())


async def provoke_rights(ears: Ears) -> None:
    """Be let in nowhere, or be denied one command after the other."""
    for given in ({"password": f"{CANARY}-wrong"}, {"username": f"{CANARY}-nobody"}):
        await ears.hear_all(ears.another(**given))
    for command in NO_RIGHTS:
        set_rules(ears, f"{acl_of(ears.backend.prefix)} -{command}")
        await ears.hear_all()
        await ears.hear_all(ears.another(database=1))
    set_rules(ears, acl_of(f"{CANARY}:elsewhere"))
    await ears.hear_all()
    set_rules(ears, acl_of(ears.backend.prefix))
    ears.run("ACL", "SETUSER", "default", "reset")
    await ears.hear_all()
    ears.backend.reset_rights()


async def provoke_unfitness(ears: Ears) -> None:
    """Make the server unfit in ways that each path of the adapter sees."""
    spoil: dict[tuple[Any, ...], tuple[Any, ...]] = {
        ("CONFIG", "SET", "appendfsync", "everysec"): ("CONFIG", "SET", "appendfsync", "always"),
        ("CONFIG", "SET", "maxmemory", "1"): ("CONFIG", "SET", "maxmemory", "0"),
        ("REPLICAOF", "127.0.0.1", "1"): ("REPLICAOF", "NO", "ONE"),
        ("SET", CANARY, CANARY, "EX", "1000"): ("DEL", CANARY),
    }
    for command, undo in spoil.items():
        ears.run(*command)
        await ears.hear_all()
        ears.run(*undo)
    marker = marker_key(ears.backend.prefix)
    for value in (f'["{CANARY}",1]', CANARY, f'["{CANARY}"', "[]"):
        ears.run("SET", marker, value)
        await ears.hear_all()
    ears.run("DEL", marker)
    await ears.hear_all()
    ears.backend.mark()


async def provoke_damage(ears: Ears) -> None:
    """Put something telling in the place of each thing that is stored."""
    names = [
        key.removeprefix(ears.base.encode()).decode() for key in ears.run("KEYS", f"{ears.base}*")
    ]
    assert len(names) > 12
    for name in names:
        await ears.seed()
        if ears.run("TYPE", ears.base + name) == b"hash":
            for field, right in ears.run("HGETALL", ears.base + name).items():
                for wrong in (CANARY.encode(), b'["' + right, right.replace(b"2026", b"qxqx")):
                    ears.run("HSET", ears.base + name, field, wrong)
                    await ears.hear_all()
        else:
            ears.run("ZADD", ears.base + name, 0, CANARY * 12)
            await ears.hear_all()
        ears.run("DEL", ears.base + name)
        await ears.hear_all()
        await ears.seed()
        ears.run("DEL", ears.base + name)
        ears.run("RPUSH", ears.base + name, CANARY)
        await ears.hear_all()
    await ears.seed()


async def provoke_losses(ears: Ears) -> None:
    """Lose the server, its answers, and the time."""
    nowhere = f"rediss://localhost:{free_port()}"
    await ears.hear_all(ears.another(endpoint=nowhere))
    await ears.hear_all(ears.another(ca_file=None))
    proxy = ears.backend.proxy()
    async with proxy.listening():
        provider = ears.another(endpoint=proxy.endpoint)
        await provider.ready(timeout=SECONDS)
        proxy.lose_replies()
        await ears.hear(provider.commit(updated(), timeout=0.2))
        await ears.hear(provider.ready(timeout=0.2))
    await provider.close()
    await ears.hear_all(provider)


async def provoke_callers(ears: Ears) -> None:
    """Write what cannot be written."""
    for text in (f"{CANARY}\0", f"{CANARY}\ud800"):
        await ears.hear(
            ears.provider.commit(
                specimens.create(PROJECT, specimens.memory(RECORD, text)), timeout=SECONDS
            )
        )
    odd = specimens.keyed(MADE, key=f"{CANARY}-odd", outcome={CANARY: {1, 2}})
    await ears.hear(ears.provider.commit(odd, timeout=SECONDS))
    await ears.hear(release(ears.provider, PROJECT, EFFECT, CANARY, code=f"{CANARY}\0"))


async def provoke_operator(ears: Ears) -> None:
    """Write a marker where there is one, and where one may not."""
    who = f"{USER}:{PASSWORD}"
    place = f"localhost:{ears.backend.server.port}/0?ca_file={ears.backend.server.ca_file}"
    for user in (who, f"{USER}:{CANARY}-wrong"):
        address = f"rediss://{user}@{place}&key_prefix={ears.backend.prefix}"
        await ears.hear(init_resource(address, "another", 1))


async def test_nothing_is_told(ears: Ears, caplog: pytest.LogCaptureFixture) -> None:
    """004-101: every sort of error was provoked, and none, nor a log, says what it was about."""
    caplog.set_level(logging.DEBUG)
    await provoke_callers(ears)
    await provoke_rights(ears)
    await provoke_unfitness(ears)
    await provoke_operator(ears)
    await provoke_damage(ears)
    await provoke_losses(ears)
    assert {type(error) for error in ears.heard} == {
        *(NegotiationRefusedError, OutcomeUnknownError, ProviderClosedError, ResourceMismatchError),
        *(ProviderTimeoutError, ProviderUnavailableError, StorageFullError, StoredDataInvalidError),
        WriteSetInvalidError,
    }
    shown = {"".join(traceback.format_exception(error)) + repr(error) for error in ears.heard}
    assert [text for text in shown if CANARY in text] == []
    assert CANARY not in caplog.text
