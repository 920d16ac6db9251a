"""What a write asks for in several goes, put together."""

from collections.abc import Mapping
from dataclasses import replace

from broker.memory.holding import FREE
from providers.requests import Loaded, LoadRequest


def with_met(request: LoadRequest, met: Mapping[str, str | None]) -> LoadRequest:
    """Return a request for the keys that a commit ran into, too, and for who held them."""
    if not met:
        return request
    holders = tuple(holder for holder in met.values() if holder is not None)
    return replace(
        request,
        keys=tuple(dict.fromkeys((*request.keys, *met))),
        record_ids=tuple(dict.fromkeys((*request.record_ids, *holders))),
        graph=request.graph or bool(holders),
    )


def answered(request: LoadRequest, loaded: Loaded) -> Loaded:
    """Return what was found, with an entry for every key asked for: ``FREE`` where it is free."""
    if not request.keys:
        return loaded
    return replace(loaded, keys={key: loaded.keys.get(key, FREE) for key in request.keys})


def joined(loaded: Loaded, more: Loaded, *, keeps_graph: bool) -> Loaded:
    """Return what two requests found. Only heads, keys and the graph are asked for later.

    A graph that was asked for at first stays as it was then: what was read beside it is no newer.
    """
    return replace(
        loaded,
        heads={**loaded.heads, **more.heads},
        keys={**loaded.keys, **more.keys},
        graph=loaded.graph if keeps_graph else more.graph,
    )
