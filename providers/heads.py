"""What is said of a head beside its newest revision: size, and which sets of others it is in."""

from providers.model import Kind, Revision, State, Trust

_SHARED = "cross-team"


def size_of(revision: Revision) -> int:
    """Return the bytes of UTF-8 that count for a revision without its facet (K-5, X-2)."""
    said = revision.content
    texts = (said.type, said.title, said.content, said.rationale, revision.reason, *said.tags)
    return sum(len(text.encode()) for text in texts if text is not None)


def is_moved(now: Revision) -> bool:
    """Tell whether a record goes with its agent's export (X-1)."""
    return now.kind in (Kind.MEMORY, Kind.DECISION) and now.state is not State.FORGOTTEN


def entered(now: Revision) -> list[str]:
    """Return the sets of context candidates that a head is in (K-1 to K-3)."""
    if now.state is not State.ACTIVE or now.trust not in (Trust.PENDING, Trust.APPROVED):
        return []
    approved = now.trust is Trust.APPROVED
    if now.kind is Kind.MEMORY:
        shared = approved and any(
            each.lower() == _SHARED for each in now.content.tags if each.isascii()
        )
        return [memories(now.agent_id), *(["shared"] if shared else [])]
    if approved and now.kind is Kind.DECISION:
        return ["decisions"]
    if approved and now.kind is Kind.SESSION_CONTEXT and now.source_run_id is not None:
        return [sessions(now.agent_id, now.source_run_id)]
    return []


def memories(agent_id: str) -> str:
    """Name the set of an agent's memories that may enter its contexts."""
    return f"memories/{agent_id}"


def sessions(agent_id: str, run_id: str) -> str:
    """Name the set of session contexts of an agent's run."""
    return f"sessions/{len(agent_id.encode())}/{agent_id}/{run_id}"
