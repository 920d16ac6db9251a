"""What the edge knows about each method: how long a call may take, and what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from broker.server.admission import Cost

READ_S: Final = 5.0
WRITE_S: Final = 10.0
WIDE_S: Final = 20.0
"""For methods that look at a whole project or compile a context."""


@dataclass(frozen=True, slots=True)
class MethodPolicy:
    """The longest a call may take, which is also its default, in seconds; and its cost."""

    deadline_s: float
    cost: Cost = Cost.LIGHT


READ: Final = MethodPolicy(READ_S)
WRITE: Final = MethodPolicy(WRITE_S)

METHODS: Final[Mapping[str, MethodPolicy]] = {
    "/broker.api.v1.BindingService/GetBinding": READ,
    "/broker.api.v1.BindingService/ListProviders": READ,
    "/broker.api.v1.RecordService/CreateRecord": WRITE,
    "/broker.api.v1.RecordService/GetRecord": READ,
    "/broker.api.v1.RecordService/UpdateRecord": WRITE,
    "/broker.api.v1.RecordService/ListRevisions": READ,
    "/broker.api.v1.RecordService/GetRevision": READ,
    "/broker.api.v1.RecordService/BatchGetRecords": READ,
    "/broker.api.v1.RecordService/SearchRecords": READ,
    "/broker.api.v1.RecordService/ArchiveRecord": WRITE,
    "/broker.api.v1.RecordService/UnarchiveRecord": WRITE,
    "/broker.api.v1.RecordService/SupersedeDecision": WRITE,
    "/broker.api.v1.RecordService/RestoreRecord": WRITE,
    "/broker.api.v1.RecordService/ApproveRecord": WRITE,
    "/broker.api.v1.RecordService/RejectRecord": WRITE,
    "/broker.api.v1.RecordService/ReopenRecord": WRITE,
}
"""Every method that is served. The server does not start with one that has no row here."""

OPEN_SERVICES: Final = frozenset(
    {
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
    }
)
"""Services that need no token and wait in no line."""


def is_open(method: str) -> bool:
    """Tell whether a full method name belongs to an open service."""
    return method[1:].partition("/")[0] in OPEN_SERVICES
