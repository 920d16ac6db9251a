"""The rights that the adapter needs: each of those that are listed, and no other (004-38)."""

from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from broker.devstack.redis import Flavour
from providers.conformance import specimens
from providers.conformance.delivery_steps import accepted, acquire, leased
from providers.conformance.steps import SECONDS, candidates, load, page, search
from providers.conformance.transfer_steps import export, graves
from providers.deliveries import EffectRequest, LeaseRequest, PendingEffectsRequest
from providers.errors import NegotiationRefusedError, OutcomeUnknownError, ProviderError
from providers.model import AcceptedEffect, Claim, WriteSet
from providers.redis.keys import marker_key, marker_value
from providers.redis.provider import RedisMemoryProvider
from providers.redis.rights import COMMANDS, acl_of
from tests.fixtures.redis import RESOURCE, RedisBackend
from tests.integration.providers.redis_calls import (
    EVERY,
    PROJECT,
    are_unfit,
    refusal,
    refusals,
    works,
)

DATABASE = 3
ON_CONNECTING = {"info", "select", "script|load"}
IN_EACH_CALL = {"config|get", "evalsha", "get", "hget"}
CLAIMED = specimens.memory("r1", content=specimens.content(tags=("one", "two")))
LINKED = specimens.decision("d1")


class Use:
    """A provider under use: everything it does, with what it needs to do it."""

    def __init__(self, backend: RedisBackend, provider: RedisMemoryProvider) -> None:
        self.backend, self.provider = backend, provider
        self.effects: list[AcceptedEffect] = []
        self.tokens: list[str] = []

    async def prepare(self) -> None:
        """Put into the store what the calls are about."""
        made = specimens.create(PROJECT, CLAIMED, LINKED, claims=(Claim("k1", "r1"),))
        await self.provider.commit(made, timeout=SECONDS)
        self.effects = await accepted(self.provider, PROJECT, 2)
        self.tokens = [await leased(self.provider, PROJECT, self.effects[0])]

    def calls(self) -> dict[str, Callable[[], Awaitable[object]]]:
        """Return calls that send every command there is between them; writes come last."""
        provider = self.provider
        lease = LeaseRequest(
            project=PROJECT,
            run_id="run-1",
            receipt_id=self.effects[0].receipt_id,
            token=self.tokens[0],
        )
        effect = EffectRequest(
            project=PROJECT, run_id="run-1", receipt_id=self.effects[0].receipt_id
        )
        pending = PendingEffectsRequest(project=PROJECT, run_id="run-1", after_sequence=0, limit=10)
        return {
            "load": lambda: load(provider, PROJECT, "r1", keys=("k1",)),
            "revisions": lambda: page(provider, PROJECT, "r1"),
            "search": lambda: search(provider, PROJECT, tags=("one", "two")),
            "candidates": lambda: candidates(provider, PROJECT),
            "export": lambda: export(provider, PROJECT),
            "an export by name": lambda: export(provider, PROJECT, "r1"),
            "tombstones": lambda: graves(provider, PROJECT, "k1"),
            "effect": lambda: provider.effect(effect, timeout=SECONDS),
            "pending": lambda: provider.pending_effects(pending, timeout=SECONDS),
            "acquire": lambda: acquire(provider, PROJECT, self.effects[1]),
            "acknowledge": lambda: provider.acknowledge(
                lease, acknowledgement=specimens.acknowledgement(), timeout=SECONDS
            ),
            "create": lambda: provider.commit(created(), timeout=SECONDS),
            "update": lambda: provider.commit(changed(), timeout=SECONDS),
        }

    def kept(self) -> dict[bytes, bytes]:
        """Return all that the database holds."""
        return self.backend.kept(DATABASE)


def created() -> WriteSet:
    record = specimens.memory(specimens.fresh("r"))
    return specimens.create(PROJECT, record, effect=specimens.effect(3))


def changed() -> WriteSet:
    """Let go of a key and of a tag, and link a decision to another."""
    moved = specimens.after(CLAIMED, content=specimens.content(tags=("one",)))
    return specimens.write(
        PROJECT,
        specimens.put(moved, over=CLAIMED),
        specimens.put(specimens.superseded(LINKED, "d2"), over=LINKED),
        releases=(Claim("k1", "r1"),),
    )


@pytest.fixture
async def use(redis_backend: RedisBackend) -> AsyncIterator[Use]:
    """A provider in a database that is not the first, with the rights that are listed."""
    mark = "redis.call('SELECT', ARGV[1]) return redis.call('SET', KEYS[1], ARGV[2])"
    marker = (marker_key(redis_backend.prefix), DATABASE, marker_value(RESOURCE))
    redis_backend.server.execute("EVAL", mark, 1, *marker)
    provider = RedisMemoryProvider(redis_backend.options(database=DATABASE, pool_ready=1))
    made = Use(redis_backend, provider)
    await provider.negotiate(timeout=SECONDS)
    await made.prepare()
    yield made
    await provider.close()


def without(prefix: str, command: str) -> str:
    return acl_of(prefix).replace(f" +{command} ", " ").removesuffix(f" +{command}")


async def error_of(work: Awaitable[object]) -> ProviderError | None:
    """Return what a call is refused with, if it is."""
    try:
        await work
    except ProviderError as error:
        return error
    return None


def is_about_rights(error: ProviderError) -> bool:
    return isinstance(error, NegotiationRefusedError) and error.fact == "rights"


async def test_what_is_listed_is_enough(use: Use) -> None:
    """004-38: with exactly these rights everything works, and the server denied nothing."""
    use.backend.server.execute("ACL", "LOG", "RESET")
    await use.provider.negotiate(timeout=SECONDS)
    await use.provider.ready(timeout=SECONDS)
    for call in use.calls().values():
        await call()
    newcomer = RedisMemoryProvider(use.backend.options(database=DATABASE))
    await works(newcomer)
    await newcomer.close()
    assert use.backend.server.execute("ACL", "LOG") == []


@pytest.mark.parametrize("command", COMMANDS)
async def test_each_right_is_needed(use: Use, command: str) -> None:
    """004-38: without any of them negotiation and readiness refuse the user, and say why."""
    use.backend.server.set_acl(without(use.backend.prefix, command))
    newcomer = RedisMemoryProvider(use.backend.options(database=DATABASE))
    told = [
        await refusal(newcomer.negotiate(timeout=SECONDS)),
        await refusal(newcomer.ready(timeout=SECONDS)),
    ]
    await newcomer.close()
    assert all(map(is_about_rights, told))
    assert {str(error) for error in told} <= {
        "the user lacks a right",
        f"the user lacks the right to {command}",
    }
    if command not in {*ON_CONNECTING, "config|get", "evalsha", "acl|dryrun"}:
        assert str(told[0]) == f"the user lacks the right to {command}"


@pytest.mark.parametrize("command", sorted({*COMMANDS} - ON_CONNECTING - {"acl|dryrun"}))
async def test_a_right_that_is_taken_away(use: Use, command: str) -> None:
    """004-38, 004-41: what needed it refuses and leaves nothing half-written; the rest goes on."""
    calls = use.calls()
    use.backend.server.set_acl(without(use.backend.prefix, command))
    refused: set[str] = set()
    for name, call in calls.items():
        before = use.kept()
        error = await error_of(call())
        if type(error) is OutcomeUnknownError and command == "config|get":
            refused.add(name)  # it was written; only nobody could see under which settings
        elif error is not None:
            refused.add(name)
            assert is_about_rights(error), name
            assert use.kept() == before, name
    assert refused
    assert (refused == set(calls)) == (command in IN_EACH_CALL)
    use.backend.server.set_acl(acl_of(use.backend.prefix))
    await use.provider.negotiate(timeout=SECONDS)
    found = await load(use.provider, PROJECT, "r1", "d1", keys=("k1",))
    assert set(found.heads) == {"r1", "d1"}


async def test_keys_that_the_user_may_not_touch(use: Use) -> None:
    """004-38: the prefix of the options lies outside what the user may reach."""
    use.backend.server.set_acl(acl_of("elsewhere"))
    before = use.kept()
    for call in use.calls().values():
        assert is_about_rights(await refusal(call()))
    assert is_about_rights(await refusal(use.provider.negotiate(timeout=SECONDS)))
    assert use.kept() == before


async def test_a_user_who_may_read_only(redis_backend: RedisBackend) -> None:
    """004-38: rights on keys count as those on commands do."""
    rules = acl_of(redis_backend.prefix).replace("~", "%R~", 1)
    redis_backend.server.set_acl(rules)
    provider = RedisMemoryProvider(redis_backend.options())
    assert is_about_rights(await refusal(provider.negotiate(timeout=SECONDS)))
    are_unfit(await refusals(provider, EVERY), "rights")
    await provider.close()


async def test_a_default_user_without_rights(redis_backend: RedisBackend) -> None:
    """004-38: refused where the server would leave out what was written when it starts again.

    That it does is shown in ``test_redis_loading``.
    """
    provider = RedisMemoryProvider(redis_backend.options())
    await works(provider)
    for lacking in ("reset", "reset ~* &* +@all -hset", "reset ~other:* &* +@all"):
        redis_backend.server.execute("ACL", "SETUSER", "default", *lacking.split())
        if redis_backend.server.flavour is Flavour.VALKEY:
            await works(provider)
            continue
        for told in (
            await refusal(provider.negotiate(timeout=SECONDS)),
            await refusal(provider.ready(timeout=SECONDS)),
        ):
            assert isinstance(told, NegotiationRefusedError)
            assert told.fact == "aof"
            assert "the default user" in str(told)
    for enough in ("reset off ~* &* +@all", f"reset ~{redis_backend.prefix}:* +@write"):
        redis_backend.server.execute("ACL", "SETUSER", "default", *enough.split())
        await works(provider)
    await provider.close()
