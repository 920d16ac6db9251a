"""The only module that names adapters."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from functools import partial
from typing import Any, TypeVar

from providers.address import fault, trust_fault
from providers.cosmos import options as cosmos_options
from providers.cosmos.container import definition
from providers.cosmos.provider import CosmosMemoryProvider
from providers.cosmos.resource import init_resource as init_cosmos
from providers.interface import IMemoryProvider
from providers.migration import migrate
from providers.postgres import options as postgres_options
from providers.postgres.migrations import TREE as POSTGRES_TREE
from providers.postgres.provider import PostgresMemoryProvider
from providers.postgres.resource import init_resource as init_postgres
from providers.redis import options as redis_options
from providers.redis.provider import RedisMemoryProvider
from providers.redis.resource import init_resource as init_redis
from providers.redis.rights import acl_of

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One kind of store.

    ``open`` checks the options, files that they name too, and returns a provider; it raises
    ValueError or TypeError naming the option and reaches no store. ``init_resource`` is an
    operator's; it takes the store's address, the resource id and the generation, and refuses a
    marker that is there, as NegotiationRefusedError with the fact ``marker`` where it says the same
    and as ResourceMismatchError where not. An address that must not be used is a ValueError, which
    does not repeat it; a store that cannot be reached an OSError or ProviderUnavailableError.
    """

    version: str
    options_schema_version: int
    open: Callable[[Mapping[str, Any]], IMemoryProvider]
    init_resource: Callable[[str, str, int], Awaitable[None]]


NATIVE = postgres_options.ADAPTER_ID
"""The adapter whose database holds the broker's own schema too."""

migrate_native = partial(migrate, POSTGRES_TREE)
"""Migrates the schema of the native adapter; the others have none."""

redis_acl = acl_of
"""Returns what the user that serves Redis may do; in PostgreSQL the migrations grant that."""

cosmos_container = definition
"""Returns the container that Cosmos DB must have, which an operator makes."""


def _made(kind: type[T], given: Mapping[str, Any]) -> T:
    """Make options of what is given, and name what is not known or not there."""
    known = {each.name: each for each in fields(kind)}  # type: ignore[arg-type]
    if unknown := sorted(given.keys() - known.keys()):
        raise ValueError(f"there is no option {unknown[0]}; there are: {', '.join(known)}")
    missing = [
        name for name, each in known.items() if each.default is MISSING and name not in given
    ]
    if missing:
        raise ValueError(f"the option {missing[0]} is missing")
    return kind(**given)


def _open_postgres(options: Mapping[str, Any]) -> IMemoryProvider:
    checked = _made(postgres_options.PostgresOptions, options)
    if fault := trust_fault(checked.dsn):
        raise ValueError(f"the option dsn: {fault}")
    return PostgresMemoryProvider(checked)


async def _init_postgres(address: str, resource_id: str, generation: int) -> None:
    if why := fault(address):
        raise ValueError(f"the address {why}")
    await init_postgres(address, resource_id, generation)


def _open_redis(options: Mapping[str, Any]) -> IMemoryProvider:
    return RedisMemoryProvider(_made(redis_options.RedisOptions, options))


def _open_cosmos(options: Mapping[str, Any]) -> IMemoryProvider:
    return CosmosMemoryProvider(_made(cosmos_options.CosmosOptions, options))


_BUILT_IN: Mapping[str, Adapter] = {
    NATIVE: Adapter(
        version=postgres_options.ADAPTER_VERSION,
        options_schema_version=postgres_options.OPTIONS_SCHEMA_VERSION,
        open=_open_postgres,
        init_resource=_init_postgres,
    ),
    redis_options.ADAPTER_ID: Adapter(
        version=redis_options.ADAPTER_VERSION,
        options_schema_version=redis_options.OPTIONS_SCHEMA_VERSION,
        open=_open_redis,
        init_resource=init_redis,
    ),
    cosmos_options.ADAPTER_ID: Adapter(
        version=cosmos_options.ADAPTER_VERSION,
        options_schema_version=cosmos_options.OPTIONS_SCHEMA_VERSION,
        open=_open_cosmos,
        init_resource=init_cosmos,
    ),
}


def adapter(name: str) -> Adapter:
    """Return the adapter of a name.

    Raises:
        ValueError: no adapter has that name. Not retryable.
    """
    found = _BUILT_IN.get(name)
    if found is None:
        raise ValueError(f"no adapter is named {name!r}; there are: {', '.join(sorted(_BUILT_IN))}")
    return found
