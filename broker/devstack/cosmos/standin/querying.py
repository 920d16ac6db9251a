"""Queries as requests: the body, the index they need, and pages with continuations."""

from __future__ import annotations

import base64
import hashlib
import json
from dataclasses import dataclass
from typing import Any

from broker.devstack.cosmos.standin import documents, indexing
from broker.devstack.cosmos.standin.calls import Call, Reply
from broker.devstack.cosmos.standin.container import Container
from broker.devstack.cosmos.standin.protocol import CONTINUATION, PAGE_SIZE
from broker.devstack.cosmos.standin.refusals import invalid
from broker.devstack.cosmos.standin.sql.evaluation import Scope
from broker.devstack.cosmos.standin.sql.narrowing import narrowed
from broker.devstack.cosmos.standin.sql.ordering import Place, Sequence
from broker.devstack.cosmos.standin.sql.parser import parse
from broker.devstack.cosmos.standin.sql.selection import Results, is_aggregate, selected
from broker.devstack.cosmos.standin.sql.syntax import Query

PAGE_ITEMS = 100
PAGE_ITEMS_MAX = 1000
PAGE_BYTES_MAX = 4_000_000


@dataclass(frozen=True)
class Progress:
    """How far earlier pages came.

    Attributes:
        after: The place of the last result looked at; None at the beginning.
        skip: How many results are still to be left out.
        left: How many may still be returned; None where there is no limit.
    """

    after: Place | None
    skip: int
    left: int | None


def answer(container: Container, partition: str, call: Call, items_max: int) -> Reply:
    """Returns one page of a query's results.

    Args:
        container: Where to look.
        partition: The only partition to look at.
        call: The request.
        items_max: A further limit of the page, which a fault sets; negative for none.

    Raises:
        RefusalError: The request is not one that this stand-in knows.
    """
    body = documents.mapping(call.json("application/query+json"), "a query")
    query, scope = _read(container, body)
    wanted = [(order.path.names, order.descends) for order in query.orders]
    indexing.check_order(container.definition["indexingPolicy"], wanted)
    seal = _seal(container, partition, body)
    begun = Progress(None, scope.number(query.offset) or 0, scope.number(query.limit))
    progress = _continued(call.headers.get(CONTINUATION, ""), seal) or begun
    among = narrowed(query.where, scope, container.lookup(partition).find)
    results = selected(query, scope, container.items(partition, among))
    size = _page_size(call)
    if items_max >= 0 and not is_aggregate(query):
        size = min(size, items_max)
    page, more = _page(results, Sequence(query.orders), progress, size)
    headers = {"x-ms-item-count": str(len(page))}
    if more is not None:
        headers[CONTINUATION] = _continuation(more, seal)
    return Reply(200, {"_rid": container.rid, "Documents": page, "_count": len(page)}, headers)


def _read(container: Container, body: dict[str, Any]) -> tuple[Query, Scope]:
    documents.only(body, {"query", "parameters"}, "a query")
    text, given = body.get("query"), body.get("parameters") or []
    if not isinstance(text, str) or not isinstance(given, list):
        raise invalid("a query is a text, with a list of parameters")
    parameters: dict[str, Any] = {}
    for parameter in given:
        documents.only(documents.mapping(parameter, "a parameter"), {"name", "value"}, "it")
        name = parameter.get("name")
        if not isinstance(name, str) or name in parameters or "value" not in parameter:
            raise invalid("each parameter has a name of its own, and a value")
        parameters[name] = parameter["value"]
    return parse(text), Scope(parameters, container.clock)


def _page(
    results: Results, sequence: Sequence, progress: Progress, size: int
) -> tuple[list[Any], Progress | None]:
    """Returns a page, and how far it came where a later one may hold something."""
    page: list[Any] = []
    after, skip, left, total = progress.after, progress.skip, progress.left, 0
    for place, result in results:
        if progress.after is not None and not sequence.is_after(place, progress.after):
            continue
        if left == 0:
            return page, None
        if skip:
            skip, after = skip - 1, place
            continue
        total += len(documents.written(result))
        if len(page) >= size or (page and total > PAGE_BYTES_MAX):
            return page, Progress(after, skip, left)
        page.append(result)
        after, left = place, None if left is None else left - 1
    return page, None


def _page_size(call: Call) -> int:
    given = call.headers.get(PAGE_SIZE, "-1")
    if given == "-1":
        return PAGE_ITEMS
    if not (given.isascii() and given.isdigit()) or not 1 <= int(given) <= PAGE_ITEMS_MAX:
        raise invalid(f"{PAGE_SIZE} is neither -1 nor 1 to {PAGE_ITEMS_MAX}")
    return int(given)


def _seal(container: Container, partition: str, body: dict[str, Any]) -> str:
    """Names the query that a continuation belongs to."""
    whole = documents.written([container.rid, partition, body.get("query"), body.get("parameters")])
    return hashlib.sha256(whole).hexdigest()


def _continuation(progress: Progress, seal: str) -> str:
    kept = [seal, progress.after, progress.skip, progress.left]
    return base64.urlsafe_b64encode(documents.written(kept)).decode()


def _continued(token: str, seal: str) -> Progress | None:
    if not token:
        return None
    try:
        held, after, skip, left = json.loads(base64.urlsafe_b64decode(token))
    except (ValueError, TypeError):
        raise invalid("the continuation is not one that was given here") from None
    if held != seal:
        raise invalid("the continuation belongs to another query")
    return Progress(None if after is None else tuple(after), skip, left)
