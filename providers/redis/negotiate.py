"""Looks at the live resource and says whether it is fit, and what it can do (004-27, 004-38)."""

from providers.capabilities import Capability
from providers.redis.calls import Calls
from providers.redis.options import ADAPTER_VERSION, OPTIONS_SCHEMA_VERSION
from providers.requests import Negotiated

CAPABILITIES = frozenset(Capability)
RECALL_RECORDS_MAX = 10_000
"""How many memories of an agent are looked through by one recall: the entries of all are read."""


async def negotiate(
    calls: Calls, options_revision: str, recall_records_max: int, timeout: float
) -> Negotiated:
    """See ``IMemoryProvider.negotiate``. Looks through a connection of its own.

    Raises:
        NegotiationRefusedError: With the fact ``version``, ``cluster``, ``replica``, ``aof``,
            ``eviction``, ``expiring_key`` or ``rights``. Not retryable.
        ResourceMismatchError: The marker is absent or another. Not retryable.
    """
    await calls.look(timeout=timeout)
    return Negotiated(
        resource=calls.resource,
        adapter_version=ADAPTER_VERSION,
        options_schema_version=OPTIONS_SCHEMA_VERSION,
        options_revision=options_revision,
        capabilities=CAPABILITIES,
        absent={},
        recall_records_max=recall_records_max,
    )
