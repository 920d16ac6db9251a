"""What each request is answered with; nothing here waits, so each is done before the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from broker.devstack.cosmos.standin import batch, protocol, querying, signature
from broker.devstack.cosmos.standin.account import Account
from broker.devstack.cosmos.standin.calls import Call, Reply
from broker.devstack.cosmos.standin.catalog import Catalog
from broker.devstack.cosmos.standin.container import Container
from broker.devstack.cosmos.standin.items import BYTES_MAX, Draft, Outcome
from broker.devstack.cosmos.standin.refusals import (
    CONTAINER_CHANGED,
    NOT_ALLOWED_BY_TOKEN,
    OWNER_NOT_FOUND,
    RefusalError,
    invalid,
    too_large,
)

CHARGES = {"read": 1, "query": 3}
CHARGE = 5
"""Request charges are made up: real ones depend on sizes, indexes and the service."""
_MANAGEMENT = {
    f"{verb} {what}"
    for verb in ("create", "replace", "delete")
    for what in ("database", "container")
}


class Service:
    """The account with its databases, containers and items.

    Attributes:
        account: Who is served, and how.
    """

    def __init__(self, account: Account, catalog: Catalog) -> None:
        """Serves an account and its catalog."""
        self.account = account
        self._catalog = catalog
        self._answers: dict[str, Callable[[Call], Reply]] = {
            "account": self._account,
            "list database": self._list_databases,
            "create database": self._create_database,
            "read database": self._read_database,
            "delete database": self._delete_database,
            "list container": self._list_containers,
            "create container": self._create_container,
            "read container": self._read_container,
            "replace container": self._replace_container,
            "delete container": self._delete_container,
            "ranges": self._ranges,
        }

    def authenticate(self, call: Call, kind: str) -> None:
        """Refuses who may not ask, and what is not understood.

        Raises:
            RefusalError: 401, 403, or 400 for a header that is not known here.
        """
        settings = self.account.settings
        if not signature.check(call, self.account.key, settings.bearer) and kind in _MANAGEMENT:
            raise RefusalError(403, "a token may not manage resources", NOT_ALLOWED_BY_TOKEN)
        protocol.check(call, settings.consistency)
        if len(call.body) > BYTES_MAX:
            raise too_large("the request", len(call.body), BYTES_MAX)

    def answer(self, call: Call, kind: str, items_max: int) -> Reply:
        """Answers a request.

        Args:
            call: The request, of somebody who may ask.
            kind: What ``protocol.kind_of`` says of it.
            items_max: A limit of a query's page, which a fault sets; negative for none.

        Raises:
            RefusalError: It is not carried out.
        """
        if kind in self._answers:
            return self._answers[kind](call)
        if kind not in {"create", "read", "replace", "delete", "query", "batch"}:
            raise invalid("this stand-in does not know that request")
        container = self._intended(call)
        partition = protocol.partition_of(call) if protocol.PARTITION in call.headers else None
        if partition is None:
            cross = 1004 if kind == "query" else 0
            raise invalid("this stand-in serves one partition at a time: name it", cross)
        if kind == "query":
            reply = querying.answer(container, partition, call, items_max)
        elif kind == "batch":
            reply = batch.answer(container, partition, call)
        else:
            reply = _single(container, partition, call, kind)
        return _labelled(reply, container, kind)

    # --- account, databases, containers ---------------------------------------------------

    def _account(self, call: Call) -> Reply:
        if call.method != "GET":
            raise invalid("the account can only be read")
        return Reply(200, self.account.document(call.headers.get("host", "")))

    def _list_databases(self, _: Call) -> Reply:
        found = self._catalog.databases()
        return Reply(200, {"_rid": "", "Databases": found, "_count": len(found)})

    def _create_database(self, call: Call) -> Reply:
        return _resource(201, self._catalog.create_database(call.json()))

    def _read_database(self, call: Call) -> Reply:
        (database,) = call.address.names
        return _resource(200, self._catalog.database(database))

    def _delete_database(self, call: Call) -> Reply:
        (database,) = call.address.names
        self._catalog.delete_database(database)
        return Reply(204)

    def _list_containers(self, call: Call) -> Reply:
        (database,) = call.address.names
        found = [each.definition for each in self._catalog.containers(database)]
        rid = self._catalog.database(database)["_rid"]
        return Reply(200, {"_rid": rid, "DocumentCollections": found, "_count": len(found)})

    def _create_container(self, call: Call) -> Reply:
        (database,) = call.address.names
        return _resource(201, self._catalog.create_container(database, call.json()).definition)

    def _read_container(self, call: Call) -> Reply:
        database, name = call.address.names
        return _resource(200, self._catalog.container(database, name).definition)

    def _replace_container(self, call: Call) -> Reply:
        if "if-match" in call.headers:
            raise invalid("this stand-in does not know If-Match for containers")
        database, name = call.address.names
        return _resource(
            200, self._catalog.change_container(database, name, call.json()).definition
        )

    def _delete_container(self, call: Call) -> Reply:
        database, name = call.address.names
        self._catalog.delete_container(database, name)
        return Reply(204)

    def _ranges(self, call: Call) -> Reply:
        container = self._intended(call)
        etag = f'"{container.rid}"'
        if call.headers.get("if-none-match") == etag:
            return Reply(304, None, {"etag": etag})
        whole = {"id": "0", "minInclusive": "", "maxExclusive": "FF", "status": "online"}
        found = {"_rid": container.rid, "PartitionKeyRanges": [whole], "_count": 1}
        return Reply(200, found, {"etag": etag})

    def _intended(self, call: Call) -> Container:
        """Returns the container that a request is about, if it is the one that the caller knows."""
        database, name = call.address.names[:2]
        container = self._catalog.container(database, name, OWNER_NOT_FOUND)
        if call.headers.get(protocol.INTENDED, container.rid) != container.rid:
            raise invalid("the container is not the one that is meant", CONTAINER_CHANGED)
        return container


def _single(container: Container, partition: str, call: Call, kind: str) -> Reply:
    draft = Draft(container, partition)
    outcome = _carry_out(draft, call, kind)
    draft.commit()
    if outcome.item is None:
        return Reply(outcome.status)
    etag = outcome.item["_etag"]
    if kind == "read" and call.headers.get("if-none-match") == etag:
        return Reply(304, None, {"etag": etag})
    is_minimal = kind != "read" and call.headers.get("prefer") == "return=minimal"
    return Reply(outcome.status, None if is_minimal else outcome.item, {"etag": etag})


def _carry_out(draft: Draft, call: Call, kind: str) -> Outcome:
    if_match = call.headers.get("if-match")
    item_id = call.address.names[-1]
    if kind == "create":
        return draft.create(call.json())
    if kind == "read":
        return draft.read(item_id)
    if kind == "replace":
        return draft.replace(item_id, call.json(), if_match)
    return draft.delete(item_id, if_match)


def _resource(status: int, definition: dict[str, Any]) -> Reply:
    return Reply(status, definition, {"etag": definition["_etag"]})


def _labelled(reply: Reply, container: Container, kind: str) -> Reply:
    """Adds what the service tells with every answer about items."""
    charge = CHARGES.get(kind, CHARGE)
    if kind == "batch":
        charge *= len(reply.body)
    headers = {
        "x-ms-alt-content-path": container.link,
        "x-ms-content-path": container.rid,
        "x-ms-documentdb-partitionkeyrangeid": "0",
        "x-ms-request-charge": str(charge),
        "x-ms-session-token": f"0:-1#{container.lsn}",
        "lsn": str(container.lsn),
    }
    return Reply(reply.status, reply.body, headers | reply.headers)
