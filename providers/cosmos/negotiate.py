"""Looks at the live account and container and says whether they are fit (004-34, 004-27)."""

from providers.capabilities import Capability
from providers.cosmos.calls import Calls
from providers.cosmos.options import ADAPTER_VERSION, OPTIONS_SCHEMA_VERSION
from providers.requests import Negotiated

CAPABILITIES = frozenset(Capability)
RECALL_RECORDS_MAX = 2_000
"""How many memories of an agent are looked through by one recall: all are read."""


async def negotiate(
    calls: Calls, options_revision: str, recall_records_max: int, timeout: float
) -> Negotiated:
    """See ``IMemoryProvider.negotiate``.

    Raises:
        NegotiationRefusedError: With the fact ``name``, ``rights``, ``regions``, ``consistency``,
            ``partition_key``, ``ttl`` or ``index``. Not retryable.
        ResourceMismatchError: The marker is absent or another, or the container is another than
            before. Not retryable.
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
