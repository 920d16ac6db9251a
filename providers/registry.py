"""The only module that names adapters."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass

from providers.interface import IMemoryProvider
from providers.postgres import options as postgres_options
from providers.postgres.migrations import migrate as migrate_postgres
from providers.postgres.provider import open_provider as open_postgres
from providers.postgres.resource import init_resource as init_postgres


@dataclass(frozen=True, slots=True, kw_only=True)
class Adapter:
    """One kind of store.

    ``open`` checks the options and returns a provider; it raises ValueError naming the option and
    does no I/O. ``migrate`` takes the address of the store and the name of the role that serves;
    ``init_resource`` takes the address, the resource id and the generation. Both are for operators.
    """

    version: str
    options_schema_version: int
    open: Callable[[Mapping[str, object]], IMemoryProvider]
    migrate: Callable[[str, str], Awaitable[None]]
    init_resource: Callable[[str, str, int], Awaitable[None]]


_BUILT_IN: Mapping[str, Adapter] = {
    "postgres": Adapter(
        version=postgres_options.ADAPTER_VERSION,
        options_schema_version=postgres_options.OPTIONS_SCHEMA_VERSION,
        open=open_postgres,
        migrate=migrate_postgres,
        init_resource=init_postgres,
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
