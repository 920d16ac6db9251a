"""Which account and container are fit, and what is noticed of them after the negotiation."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from azure.core.credentials import AccessToken

from broker.devstack.cosmos import CosmosServer, Fault
from providers.conformance import specimens
from providers.conformance.steps import committed, load
from providers.cosmos import connections, keys
from providers.cosmos.container import definition
from providers.cosmos.fitness import container_fault
from providers.cosmos.negotiate import CAPABILITIES
from providers.cosmos.provider import CosmosMemoryProvider
from providers.cosmos.resource import init_resource
from providers.errors import (
    NegotiationRefusedError,
    ProviderClosedError,
    ProviderUnavailableError,
    ResourceMismatchError,
)
from providers.model import ProjectKey, ResourceIdentity
from tests.fixtures.cosmos_resource import (
    CONTAINER,
    POLICY,
    RESOURCE,
    CosmosResource,
    cosmos_resource,
    opened,
)

PROJECT = ProjectKey("t1", "p1")
SECONDS = 20.0
OTHER_KEY = "b3RoZXI="


async def _fact(provider: CosmosMemoryProvider) -> str:
    with pytest.raises(NegotiationRefusedError) as refused:
        await provider.negotiate(timeout=SECONDS)
    return refused.value.fact


async def test_a_fit_resource_is_told(cosmos_provider: CosmosMemoryProvider) -> None:
    """004-34, 004-36, C1: identity, versions and every capability."""
    told = await cosmos_provider.negotiate(timeout=SECONDS)
    assert told.resource == RESOURCE
    assert (told.adapter_version, told.options_schema_version) == ("1.0.0", 1)
    assert (told.options_revision, told.capabilities) == ("options-v1", CAPABILITIES)


@pytest.mark.parametrize(
    ("account", "fact"),
    [
        ({"multiple_writes": True, "writable": ["North", "South"]}, "regions"),
        ({"consistency": "Session"}, "consistency"),
        ({"consistency": "ConsistentPrefix"}, "consistency"),
        ({"consistency": "Eventual"}, "consistency"),
        ({"consistency": "Strong", "readable": ["North", "South"]}, "consistency"),
    ],
    ids=str,
)
async def test_an_account_that_may_forget_is_refused(
    cosmos_provider: CosmosMemoryProvider, cosmos: CosmosServer, account: Any, fact: str
) -> None:
    """004-34: many writers, and reads that may be older than what was acknowledged."""
    cosmos.control.change_account(**account)
    assert await _fact(cosmos_provider) == fact


@pytest.mark.parametrize("regions", [["North"], ["North", "South"]])
async def test_bounded_staleness_is_enough(
    cosmos_provider: CosmosMemoryProvider, cosmos: CosmosServer, regions: list[str]
) -> None:
    cosmos.control.change_account(consistency="BoundedStaleness", readable=regions)
    assert (await cosmos_provider.negotiate(timeout=SECONDS)).resource == RESOURCE


def _without(name: str, place: int) -> dict[str, Any]:
    left = [each for number, each in enumerate(POLICY[name]) if number != place]
    return {**POLICY, name: left}


def _unindexed(field: str) -> dict[str, Any]:
    left = [each for each in POLICY["includedPaths"] if each["path"] != f"/{field}/?"]
    return {**POLICY, "includedPaths": left}


@pytest.mark.parametrize(
    ("settings", "fact"),
    [
        ({"default_ttl": 3_600}, "ttl"),
        ({"indexing_policy": _without("compositeIndexes", 0)}, "index"),
        ({"indexing_policy": _without("compositeIndexes", 1)}, "index"),
        ({"indexing_policy": _unindexed("last")}, "index"),
        ({"indexing_policy": _unindexed("recordId")}, "index"),
    ],
    ids=[
        "ttl",
        "no search order",
        "no candidate order",
        "no order of histories",
        "no order of ids",
    ],
)
async def test_a_container_that_is_not_fit_is_refused(
    cosmos_provider: CosmosMemoryProvider,
    memory: CosmosResource,
    settings: Mapping[str, Any],
    fact: str,
) -> None:
    """004-34, C2: what expires, and what no query could be ordered by."""
    await memory.change(**settings)
    assert await _fact(cosmos_provider) == fact
    await memory.change()
    assert (await cosmos_provider.negotiate(timeout=SECONDS)).resource == RESOURCE


@pytest.mark.parametrize(
    ("account", "container", "fact"),
    [
        ({}, {"default_ttl": 3_600}, "ttl"),
        ({}, {"indexing_policy": _without("compositeIndexes", 0)}, "index"),
        ({"multiple_writes": True, "writable": ["North", "South"]}, {}, "regions"),
        ({"consistency": "Session"}, {}, "consistency"),
    ],
    ids=["ttl", "index", "regions", "consistency"],
)
async def test_what_became_unfit_is_refused_in_use(
    memory: CosmosResource,
    cosmos_provider: CosmosMemoryProvider,
    account: dict[str, Any],
    container: dict[str, Any],
    fact: str,
) -> None:
    """004-34, 004-45: after the pin, when nobody negotiates any more; and nothing is written."""
    record = specimens.memory("r1")
    await committed(cosmos_provider, specimens.create(PROJECT, record))
    memory.server.control.change_account(**account)
    if container:
        await memory.change(**container)
    late = specimens.update(PROJECT, record)
    for call in (
        lambda: cosmos_provider.commit(late, timeout=SECONDS),
        lambda: load(cosmos_provider, PROJECT, "r1"),
        lambda: cosmos_provider.ready(timeout=SECONDS),
    ):
        with pytest.raises(NegotiationRefusedError) as refused:
            await call()
        assert refused.value.fact == fact
    memory.server.control.change_account(
        consistency="Strong", writable=["North"], multiple_writes=False
    )
    await memory.change()
    await committed(cosmos_provider, late)


async def test_expiry_may_be_on_where_nothing_expires_by_default(
    cosmos_provider: CosmosMemoryProvider, memory: CosmosResource
) -> None:
    """004-34: -1 means that items say so themselves; ours never do."""
    await memory.change(default_ttl=-1)
    assert (await cosmos_provider.negotiate(timeout=SECONDS)).resource == RESOURCE


@pytest.mark.parametrize("path", ["/tenantId", "/projectId/x", "/projectid"])
async def test_another_partition_key_is_refused(memory: CosmosResource, path: str) -> None:
    """004-34, C1: exactly /projectId, for whoever negotiates."""
    await memory.make_anew(path)
    provider = CosmosMemoryProvider(memory.options())
    assert await _fact(provider) == "partition_key"
    await provider.close()


@pytest.mark.parametrize("version", [1, None])
def test_a_partition_key_that_looks_at_the_beginning_alone_is_refused(version: int | None) -> None:
    """004-34, G-2: two projects with long names could be one partition; no stand-in has such."""
    made = definition()
    assert container_fault(made) is None
    key = {**made["partitionKey"], "version": version}
    fault = container_fault({**made, "partitionKey": key})
    assert fault is not None
    assert fault[0] == "partition_key"


@pytest.mark.parametrize("given", [{"database": "none"}, {"container": "none"}])
async def test_what_is_not_there_is_refused_and_not_made(
    memory: CosmosResource, given: dict[str, str]
) -> None:
    """004-34, N-4: nothing is provisioned."""
    provider = CosmosMemoryProvider(memory.options(**given))
    assert await _fact(provider) == "name"
    await provider.close()
    counts = memory.server.control.counts()
    assert not {name for name in counts if name.startswith(("create", "replace", "upsert"))}


async def test_another_key_is_refused(memory: CosmosResource) -> None:
    provider = CosmosMemoryProvider(memory.options(key=OTHER_KEY))
    assert await _fact(provider) == "rights"
    await provider.close()


class KnownIdentity:
    """Stands in for the identity of a process in Azure: one token, for this service alone."""

    def __init__(self) -> None:
        self.is_closed = False

    async def get_token(self, *scopes: str, **_: Any) -> AccessToken:
        assert all(each.endswith("/.default") for each in scopes)
        return AccessToken("the token", int(datetime.now(UTC).timestamp()) + 3_600)

    async def close(self) -> None:
        self.is_closed = True


async def test_an_identity_opens_where_there_is_no_key(
    memory: CosmosResource, monkeypatch: pytest.MonkeyPatch
) -> None:
    """004-34, O2: and nobody else's does."""
    identity = KnownIdentity()
    monkeypatch.setattr(connections, "DefaultAzureCredential", lambda: identity)
    provider = CosmosMemoryProvider(memory.options(key=None))
    assert await _fact(provider) == "rights"
    assert identity.is_closed
    memory.server.control.change_account(bearer="the token")
    assert (await provider.negotiate(timeout=SECONDS)).resource == RESOURCE
    await committed(provider, specimens.create(PROJECT, specimens.memory("r1")))
    await provider.close()


async def test_a_container_made_anew_is_another_one(
    memory: CosmosResource, cosmos_provider: CosmosMemoryProvider
) -> None:
    """004-45, C-9: with the same marker and name: each call is refused at once, nothing written."""
    async with opened(memory, marker_ms=30_000) as patient:
        record = specimens.memory("r1")
        await committed(patient, specimens.create(PROJECT, record))
        await memory.make_anew()
        await memory.mark()
        memory.server.control.forget()
        late = specimens.update(PROJECT, record)
        for provider in (patient, cosmos_provider):
            for _ in range(2):
                with pytest.raises(ResourceMismatchError):
                    await provider.commit(late, timeout=SECONDS)
                with pytest.raises(ResourceMismatchError):
                    await load(provider, PROJECT, "r1")
                with pytest.raises(ResourceMismatchError):
                    await provider.ready(timeout=SECONDS)
                with pytest.raises(ResourceMismatchError):
                    await provider.negotiate(timeout=SECONDS)
        assert memory.server.control.counts().get("batch", 0) == 0
    async with opened(memory) as anew:
        assert (await load(anew, PROJECT, "r1")).heads == {}


async def test_a_container_made_anew_between_read_and_write(memory: CosmosResource) -> None:
    """C-9: the batch goes to the container that was read, or nowhere."""
    control = memory.server.control
    async with opened(memory, marker_ms=30_000) as provider:
        control.inject(Fault(kind="batch", delay_ms=1_500))
        write = specimens.create(PROJECT, specimens.memory("r1"))
        writing = asyncio.create_task(provider.commit(write, timeout=SECONDS))
        while "batch" not in control.counts():  # noqa: ASYNC110 - another process counts
            await asyncio.sleep(0.01)
        await memory.make_anew()
        await memory.mark()
        with pytest.raises(ResourceMismatchError):
            await writing
        assert control.counts()["batch"] == 1
    async with opened(memory) as anew:
        assert (await load(anew, PROJECT, "r1")).heads == {}


async def test_another_account_behind_the_endpoint_is_refused(memory: CosmosResource) -> None:
    """004-45: at the negotiation of whoever starts, and in each call of whoever was there."""
    async with opened(memory, marker_ms=30_000) as provider:
        await committed(provider, specimens.create(PROJECT, specimens.memory("r1")))
        data = memory.server.data_dir
        memory.server.stop()
        aside = data.rename(data.with_name("aside"))
        data.mkdir()
        for name in ("key", "tls"):
            kept = aside / name
            (data / name).symlink_to(kept, target_is_directory=kept.is_dir())
        memory.server.start()
        try:
            for call in (provider.negotiate, provider.ready):
                with pytest.raises((ResourceMismatchError, NegotiationRefusedError)):
                    await call(timeout=SECONDS)
            async with cosmos_resource(memory.server) as other:
                await other.mark(ResourceIdentity("another-resource", 1))
                stranger = CosmosMemoryProvider(other.options())
                with pytest.raises(ResourceMismatchError):
                    await stranger.negotiate(timeout=SECONDS)
                await stranger.close()
        finally:
            memory.server.stop()
            data.rename(data.with_name("other"))
            aside.rename(data)
            memory.server.start()


async def test_the_marker_is_read_in_time(memory: CosmosResource) -> None:
    """004-45, G-3: not in each call, and again when what is known of it is too old."""
    control = memory.server.control
    async with opened(memory, marker_ms=30_000) as provider:
        for _ in range(5):
            await load(provider, PROJECT, "r1")
        counts = control.counts()
        assert (counts.get("read", 0), counts["query"]) == (0, 5)
    async with opened(memory, marker_ms=1) as provider:
        await load(provider, PROJECT, "r1")
        await memory.container.delete_item(keys.MARKER_ID, keys.MARKER_PARTITION)
        await asyncio.sleep(0.002)
        with pytest.raises(ResourceMismatchError):
            await load(provider, PROJECT, "r1")


async def test_a_marker_is_written_once(memory: CosmosResource, cosmos: CosmosServer) -> None:
    """004-45: by the operator, into a container without one."""
    key, place = quote(cosmos.key, safe=""), cosmos.endpoint.removeprefix("https://").rstrip("/")
    path = f"{memory.database.id}/{CONTAINER}?ca_file={cosmos.ca_file}"
    address = f"cosmos+https://:{key}@{place}/{path}"
    with pytest.raises(NegotiationRefusedError) as refused:
        await init_resource(address, RESOURCE.resource_id, RESOURCE.generation)
    assert refused.value.fact == "marker"
    with pytest.raises(ResourceMismatchError):
        await init_resource(address, RESOURCE.resource_id, 2)
    await memory.container.delete_item(keys.MARKER_ID, keys.MARKER_PARTITION)
    await init_resource(address, RESOURCE.resource_id, 2)
    provider = CosmosMemoryProvider(memory.options(generation=2))
    told = await provider.negotiate(timeout=SECONDS)
    assert told.resource == replace(RESOURCE, generation=2)
    await provider.close()


async def test_nobody_is_there(memory: CosmosResource) -> None:
    """R-1, R-2: and when somebody is, all goes on."""
    provider = CosmosMemoryProvider(memory.options())
    memory.server.stop()
    with pytest.raises(ProviderUnavailableError):
        await provider.ready(timeout=SECONDS)
    memory.server.start()
    await provider.ready(timeout=SECONDS)
    await provider.close()
    with pytest.raises(ProviderClosedError):
        await provider.ready(timeout=SECONDS)


async def test_a_certificate_of_somebody_else_is_refused(
    memory: CosmosResource, tmp_path: Path
) -> None:
    """004-34: on loopback too, where the SDK would not look."""
    with CosmosServer(tmp_path / "other") as other:
        provider = CosmosMemoryProvider(memory.options(ca_file=str(other.ca_file)))
        with pytest.raises(ProviderUnavailableError):
            await provider.ready(timeout=SECONDS)
        await provider.close()
