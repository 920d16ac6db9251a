"""Whether account and container are fit to keep memory (004-34): a look at the live ones."""

from collections.abc import Iterator, Mapping
from typing import Any

from providers.cosmos import errors, keys
from providers.cosmos.connections import Opened
from providers.errors import NegotiationRefusedError

COMPOSITES = (("/newest", "/recordId"), ("/place", "/recordId"))
"""Both ascending: the order of a search, and that of candidates."""
ORDERED = ("/last", "/sequence", "/recordId")
"""What queries order by alone."""


_KEY_VERSION = 2
"""Version 1 looks at the first 101 bytes alone: two projects could be one partition."""


async def look(opened: Opened) -> None:
    """Refuse an account or a container that is not fit.

    Raises:
        NegotiationRefusedError: With the fact ``regions``, ``consistency``, ``partition_key``,
            ``ttl`` or ``index``. Not retryable.
        RecreatedError: The container is another than the one that was opened.
        UnsoundAnswerError: An answer is none of the service's.
    """
    with errors.sound():
        account = await opened.client._get_database_account()  # noqa: SLF001 - no other way
        fault = account_fault(
            consistency=(account.ConsistencyPolicy or {}).get("defaultConsistencyLevel"),
            regions=len(account.ReadableLocations),
            many_writers=account._EnableMultipleWritableLocations,  # noqa: SLF001 - as above
        )
        # The SDK keeps for later calls what it is answered here, whatever it is: until it is fit,
        # each call looks again.
        container = await opened.container.read()
        if container["_rid"] != opened.guard.rid:
            raise errors.RecreatedError
        fault = fault or container_fault(container)
    if fault is not None:
        fact, text = fault
        raise NegotiationRefusedError(text, fact=fact)


def account_fault(
    *, consistency: str | None, regions: int, many_writers: bool
) -> tuple[str, str] | None:
    """Return fact and words for what is wrong with an account, or nothing."""
    if many_writers:
        return "regions", "several regions of the account take writes"
    if consistency not in {"Strong", "BoundedStaleness"}:
        return "consistency", "the account's default consistency is weaker than bounded staleness"
    if consistency == "Strong" and regions > 1:
        return "consistency", "an account of several regions must have bounded staleness"
    return None


def container_fault(container: Mapping[str, Any]) -> tuple[str, str] | None:
    """Return fact and words for what is wrong with a container, or nothing."""
    if container.get("partitionKey", {}).get("paths") != [keys.PARTITION_PATH]:
        return "partition_key", f"the partition key is not {keys.PARTITION_PATH} alone"
    if container["partitionKey"].get("version") != _KEY_VERSION:
        return "partition_key", f"the partition key is not of version {_KEY_VERSION}"
    if container.get("defaultTtl") not in {None, -1}:
        return "ttl", "items of the container expire by default"
    policy = container.get("indexingPolicy", {})
    if policy.get("indexingMode") != "consistent" or not policy.get("automatic"):
        return "index", "the container is not indexed by itself and at once"
    if missing := sorted(set(COMPOSITES) - set(_composites(policy))):
        return "index", f"the container has no composite index of {' and '.join(missing[0])}"
    if missing_paths := [each for each in ORDERED if not _is_indexed(policy, each)]:
        return "index", f"the container has no index of {missing_paths[0]}"
    return None


def _composites(policy: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """Give the paths of each composite index that serves an ascending order."""
    for index in policy.get("compositeIndexes", []):
        orders = {each.get("order", "ascending") for each in index}
        if len(orders) == 1:
            yield tuple(each["path"] for each in index)


def _is_indexed(policy: Mapping[str, Any], wanted: str) -> bool:
    """Tell whether the path that fits best is an included one."""
    exact, best, included = f"{wanted}/?", -1, False
    for name in ("includedPaths", "excludedPaths"):
        for entry in policy.get(name, []):
            path = entry["path"]
            if path == exact or path in {f"{wanted}/*", "/*"}:
                rank = ["/*", f"{wanted}/*", exact].index(path)
                if rank > best:
                    best, included = rank, name == "includedPaths"
    return included
