"""Transactional batches: up to 100 operations on one partition, all of them or none."""

from __future__ import annotations

from typing import Any

from broker.devstack.cosmos.standin import documents
from broker.devstack.cosmos.standin.calls import Call, Reply
from broker.devstack.cosmos.standin.container import Container
from broker.devstack.cosmos.standin.items import Draft, Outcome
from broker.devstack.cosmos.standin.refusals import RefusalError, invalid

OPERATIONS_MAX = 100
CHARGE = 5
_MEMBERS = {
    "Create": {"operationType", "resourceBody"},
    "Read": {"operationType", "id"},
    "Replace": {"operationType", "id", "resourceBody", "ifMatch"},
    "Delete": {"operationType", "id", "ifMatch"},
}


def answer(container: Container, partition: str, call: Call) -> Reply:
    """Carries a batch out and answers one result for each operation.

    200 where all are done. 207 where one is refused: it has its own status, all others 424, and
    nothing is changed.

    Raises:
        RefusalError: The request is no batch that this stand-in knows; nothing is changed.
    """
    operations = _operations(call)
    draft = Draft(container, partition)
    results = []
    for index, operation in enumerate(operations):
        try:
            results.append(_result(_carry_out(draft, operation)))
        except RefusalError as refusal:
            return Reply(207, failed(len(operations), index, refusal.status, refusal.substatus))
    draft.commit()
    return Reply(200, results)


def failed(count: int, index: int, status: int, substatus: int = 0) -> list[dict[str, Any]]:
    """Returns the results of a batch that one of its operations has failed."""
    results: list[dict[str, Any]] = [{"statusCode": 424, "requestCharge": 0}] * count
    results[index] = {"statusCode": status, "requestCharge": CHARGE}
    if substatus:
        results[index]["subStatusCode"] = substatus
    return results


def count(call: Call) -> int:
    """Returns how many operations a batch has.

    Raises:
        RefusalError: It is none.
    """
    return len(_operations(call))


def _operations(call: Call) -> list[dict[str, Any]]:
    if not call.flag("x-ms-cosmos-batch-atomic"):
        raise invalid("this stand-in only knows atomic batches")
    if call.headers.get("x-ms-cosmos-batch-continue-on-error", "false").lower() != "false":
        raise invalid("an atomic batch does not continue on an error")
    if "prefer" in call.headers:
        raise invalid("this stand-in does not know Prefer for batches")
    operations = call.json()
    if not isinstance(operations, list) or not operations:
        raise invalid("a batch is a list of operations")
    if len(operations) > OPERATIONS_MAX:
        raise invalid("the batch request has more operations than what is supported")
    for operation in operations:
        kind = documents.mapping(operation, "an operation").get("operationType")
        if not isinstance(kind, str) or kind not in _MEMBERS:
            raise invalid(f"this stand-in does not know the operation {str(kind)[:20]!r}")
        documents.only(operation, _MEMBERS[kind], f"the operation {kind}")
        if missing := _MEMBERS[kind] - operation.keys() - {"ifMatch"}:
            raise invalid(f"the operation {kind} lacks {sorted(missing)}")
        if not isinstance(operation.get("ifMatch", ""), str):
            raise invalid("ifMatch is not a text")
    return operations


def _carry_out(draft: Draft, operation: dict[str, Any]) -> Outcome:
    match operation["operationType"]:
        case "Create":
            return draft.create(operation["resourceBody"])
        case "Read":
            return draft.read(operation["id"])
        case "Replace":
            if_match = operation.get("ifMatch")
            return draft.replace(operation["id"], operation["resourceBody"], if_match)
        case _:
            return draft.delete(operation["id"], operation.get("ifMatch"))


def _result(outcome: Outcome) -> dict[str, Any]:
    result: dict[str, Any] = {"statusCode": outcome.status, "requestCharge": CHARGE}
    if outcome.item is not None:
        result |= {"eTag": outcome.item["_etag"], "resourceBody": outcome.item}
    return result
