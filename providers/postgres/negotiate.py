"""Looks at the live resource and says whether it is fit, and what it can do (004-27)."""

from collections.abc import Mapping

import asyncpg

from providers.capabilities import Capability
from providers.errors import NegotiationRefusedError
from providers.marker import check_marker
from providers.model import ResourceIdentity
from providers.postgres.connections import Connection
from providers.postgres.options import ADAPTER_VERSION, OPTIONS_SCHEMA_VERSION, PostgresOptions
from providers.postgres.schema import REVISION
from providers.postgres.statements import MARKER, NEGOTIATE
from providers.requests import Negotiated

CAPABILITIES = frozenset(Capability)
NO_VECTORS: Mapping[Capability, str] = {
    Capability.VECTORS: "the database has no pgvector: create it, then run broker migrate again"
}
"""What is absent where pgvector was not there for the last migration."""

_TRIGGERS = 6
_INDEXES = 13
_VERSION = "SELECT version_num FROM memory.alembic_version"


async def negotiate(connection: Connection, options: PostgresOptions) -> Negotiated:
    """See ``IMemoryProvider.negotiate``.

    Raises:
        NegotiationRefusedError: With the fact ``name``, ``replica``, ``durability``, ``schema``,
            ``index`` or ``rights``. Not retryable.
        ResourceMismatchError: The marker is absent or another. Not retryable.
    """
    found = await connection.fetchrow(NEGOTIATE)
    if found is None:
        raise NegotiationRefusedError("the role cannot see itself", fact="rights")
    _check_server(found, options)
    _check_rights(found)
    await _check_schema(connection, found)
    if found["missing"]:
        raise NegotiationRefusedError(f"missing: {', '.join(found['missing'])}", fact="rights")
    marker = await connection.fetchrow(MARKER)
    resource = ResourceIdentity(options.resource_id, options.generation)
    if marker is None:
        check_marker(resource, None, None)
    else:
        check_marker(resource, marker["resource_id"], marker["generation"])
    absent = {} if found["vectors"] else NO_VECTORS
    return Negotiated(
        resource=resource,
        adapter_version=ADAPTER_VERSION,
        options_schema_version=OPTIONS_SCHEMA_VERSION,
        options_revision=options.options_revision,
        capabilities=CAPABILITIES - set(absent),
        absent=absent,
    )


def _check_server(found: asyncpg.Record, options: PostgresOptions) -> None:
    if found["database_name"] != options.database_name:
        raise NegotiationRefusedError("the database has another name", fact="name")
    if found["read_only"]:
        raise NegotiationRefusedError("the database takes no writes", fact="replica")
    if not found["durable"]:
        raise NegotiationRefusedError(
            "fsync, full_page_writes and synchronous_commit must be on", fact="durability"
        )
    if found["encoding"] != "UTF8":
        raise NegotiationRefusedError("the database's encoding is not UTF8", fact="schema")


def _check_rights(found: asyncpg.Record) -> None:
    if found["too_mighty"]:
        raise NegotiationRefusedError(
            "the runtime role owns, may create, or is more than a plain role", fact="rights"
        )
    if found["excess"]:
        raise NegotiationRefusedError(f"too many: {', '.join(found['excess'])}", fact="rights")


async def _check_schema(connection: Connection, found: asyncpg.Record) -> None:
    if "alembic_version" not in (found["tables"] or ()):
        raise NegotiationRefusedError("the schema was never migrated", fact="schema")
    revision = await connection.fetchval(_VERSION)
    if revision != REVISION:
        raise NegotiationRefusedError(
            f"the schema is at {revision}, this code is for {REVISION}", fact="schema"
        )
    if found["triggers"] != _TRIGGERS:
        raise NegotiationRefusedError("a trigger is gone or disabled", fact="schema")
    if found["indexes"] != _INDEXES:
        raise NegotiationRefusedError("an index is gone or not valid", fact="index")
