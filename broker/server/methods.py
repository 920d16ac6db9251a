"""What the edge knows about each method: how long a call may take, and what it costs."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final

from broker.server.admission import Cost

READ_S: Final = 5.0
WRITE_S: Final = 10.0
WIDE_S: Final = 20.0
"""For methods that look at a whole project or compile a context."""


class Line(Enum):
    """The line a call waits in for its turn."""

    MAIN = "main"
    EFFECT_READS = "effect_reads"
    """Reads of the Events service, which a promotion that holds a place may be waiting for."""


@dataclass(frozen=True, slots=True)
class MethodPolicy:
    """The longest a call may take, which is also its default, in seconds; what it costs; its line.

    ``private``: the reply must not be stored along the way. ``takes_events_token``: the caller may
    send a token for the Events service.
    """

    deadline_s: float
    cost: Cost = Cost.LIGHT
    line: Line = Line.MAIN
    private: bool = False
    takes_events_token: bool = False


READ: Final = MethodPolicy(READ_S)
WRITE: Final = MethodPolicy(WRITE_S)
WIDE: Final = MethodPolicy(WIDE_S, Cost.HEAVY)
EFFECT_READ: Final = MethodPolicy(READ_S, line=Line.EFFECT_READS, private=True)
DELIVERING: Final = MethodPolicy(WRITE_S, takes_events_token=True)

METHODS: Final[Mapping[str, MethodPolicy]] = {
    "/broker.api.v1.BindingService/GetBinding": READ,
    "/broker.api.v1.BindingService/ListProviders": READ,
    "/broker.api.v1.ContextService/CompileContext": WIDE,
    "/broker.api.v1.ContextService/ListCompilations": READ,
    "/broker.api.v1.ContextService/GetCompilation": WIDE,
    "/broker.api.v1.DiscoveryService/SearchProject": WIDE,
    "/broker.api.v1.EffectService/GetAcceptedEffect": EFFECT_READ,
    "/broker.api.v1.EffectService/DeliverAcceptedEffect": DELIVERING,
    "/broker.api.v1.EffectService/ListPendingEffects": READ,
    "/broker.api.v1.EffectService/GetUnscopedAcceptedEffect": EFFECT_READ,
    "/broker.api.v1.MemoryService/Remember": WRITE,
    "/broker.api.v1.MemoryService/BatchRemember": MethodPolicy(WRITE_S, Cost.HEAVY),
    "/broker.api.v1.MemoryService/Recall": WIDE,
    "/broker.api.v1.MemoryService/RecallByTags": READ,
    "/broker.api.v1.MemoryService/Forget": WRITE,
    "/broker.api.v1.ProposalService/CreateProposal": WRITE,
    "/broker.api.v1.ProposalService/PromoteProposal": DELIVERING,
    "/broker.api.v1.TransferService/ExportRecords": MethodPolicy(WIDE_S, Cost.HEAVY, private=True),
    "/broker.api.v1.TransferService/ImportRecords": WIDE,
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
