"""What a context looks like.

Everything follows from the immutable revisions that entered, their order, and the agent. Neither
the time nor the query nor anything of a head's own is in it, so that a text can be rendered again
from what the log keeps (004-100).
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC
from typing import Final

from broker.context.frame import escaped, framed
from broker.context.scoring import is_core
from broker.domain.context import ContextItem, ContextKind
from providers.model import OriginTier, Revision, RevisionRef

RENDER_VERSION: Final = 1
SCHEMA: Final = "agentweaver.untrusted-context.v1"
BLOCKED: Final = "[BLOCKED]"
"""Stands for the text of a record that looks like an instruction to a model (002-28)."""

_CORE_LABEL: Final = "core"
_NO_SESSION: Final = "null"
_COMMA: Final = ","


class Draft:
    """A context while it is filled. Its size is known at every moment without rendering it."""

    def __init__(self, agent_id: str, decisions: Iterable[Revision]) -> None:
        """Begin with the decisions, in their order: they are never left out."""
        self._agent_id = agent_id
        self._decisions = [_decision(revision) for revision in decisions]
        self._memories: list[str] = []
        self._session = _NO_SESSION
        self.characters = len(self.text())

    def add_memory(self, revision: Revision, *, limit: int) -> bool:
        """Add a memory at the end if the text then has at most ``limit`` code points."""
        room = limit - self.characters - len(_COMMA if self._memories else "")
        if length_at_least(revision) > room:
            return False
        piece = _memory(revision, self._agent_id)
        if len(piece) > room:
            return False
        self._memories.append(piece)
        self.characters = limit - room + len(piece)
        return True

    def put_session(self, revision: Revision, *, limit: int) -> bool:
        """Put the session note in if the text then has at most ``limit`` code points."""
        room = limit - self.characters + len(self._session)
        if length_at_least(revision) > room:
            return False
        piece = _session(revision)
        if len(piece) > room:
            return False
        self._session = piece
        self.characters = limit - room + len(piece)
        return True

    def text(self) -> str:
        """Return the text.

        Raises:
            FrameBrokenError: what is inside reached the frame: a bug.
        """
        return framed(_payload(self._decisions, self._memories, self._session))


def length_at_least(revision: Revision) -> int:
    """Return a lower bound of what a record takes, in code points: no escape makes text shorter."""
    if _is_flagged(revision):
        return 0
    content = revision.content
    return len(content.content) + len(content.title or "") + len(content.rationale or "")


def rendered(
    decisions: Iterable[Revision],
    memories: Iterable[Revision],
    session: Revision | None,
    *,
    agent_id: str,
) -> str:
    """Return the text of what entered, in the order given, for an agent."""
    return framed(
        _payload(
            [_decision(revision) for revision in decisions],
            [_memory(revision, agent_id) for revision in memories],
            _NO_SESSION if session is None else _session(session),
        )
    )


def rendered_again(
    version: int,
    items: Sequence[ContextItem],
    revisions: Mapping[RevisionRef, Revision],
    *,
    agent_id: str,
) -> str | None:
    """Return the text of a compilation that was logged, from the revisions that entered it.

    ``items`` are those of the log, in its order; a revision is told under the ``revision_id`` that
    the log has, so that another one gives another text. ``None``: this release does not know the
    form, or a revision is gone.
    """
    if version != RENDER_VERSION:
        return None
    entered: dict[ContextKind, list[Revision]] = {kind: [] for kind in ContextKind}
    for item in items:
        revision = revisions.get(RevisionRef(item.record_id, item.revision))
        if revision is None:
            return None
        entered[item.kind].append(replace(revision, revision_id=item.revision_id))
    return rendered(
        entered[ContextKind.DECISION],
        entered[ContextKind.MEMORY],
        next(iter(entered[ContextKind.SESSION_CONTEXT]), None),
        agent_id=agent_id,
    )


def _payload(decisions: Iterable[str], memories: Iterable[str], session: str) -> str:
    return (
        f'{{"schema":"{SCHEMA}","decisions":[{_COMMA.join(decisions)}],'
        f'"memory":[{_COMMA.join(memories)}],"session":{session}}}'
    )


def _decision(revision: Revision) -> str:
    fields = _reference(revision)
    fields["label"] = escaped(revision.content.type)
    return _object(fields | _text(revision))


def _memory(revision: Revision, agent_id: str) -> str:
    tier = OriginTier.EXTERNAL if revision.facet is None else revision.facet.origin_tier
    fields = _reference(revision)
    fields["label"] = escaped(_label(revision, agent_id))
    fields["trust"] = escaped(revision.trust)
    fields["origin"] = escaped(tier or OriginTier.EXTERNAL)
    return _object(fields | _text(revision))


def _session(revision: Revision) -> str:
    """Its record id stands in the references only, as the formula has it."""
    fields = _reference(revision)
    del fields["record_id"]
    return _object(fields | _text(revision))


def _reference(revision: Revision) -> dict[str, str]:
    """Return what leads back to the revision, and the day it was stored, in UTC."""
    return {
        "record_id": escaped(revision.record_id),
        "revision": str(revision.revision),
        "revision_id": escaped(revision.revision_id),
        "stored": escaped(revision.create_time.astimezone(UTC).date().isoformat()),
    }


def _label(revision: Revision, agent_id: str) -> str:
    """Return the type; of another agent's memory with its name; of the agent's core ``core``.

    A type is free text as content is, so that of a blocked memory is blocked with it.
    """
    if is_core(revision, agent_id):
        return _CORE_LABEL
    label = BLOCKED if _is_flagged(revision) else revision.content.type
    return label if revision.agent_id == agent_id else f"{label} from {revision.agent_id}"


def _text(revision: Revision) -> dict[str, str]:
    content = revision.content
    if _is_flagged(revision):
        return {"content": escaped(BLOCKED)}
    told = {"title": content.title, "content": content.content, "rationale": content.rationale}
    return {name: escaped(value) for name, value in told.items() if value is not None}


def _object(fields: Mapping[str, str]) -> str:
    """Return a JSON object. Names are our own; values are JSON already."""
    return "{" + _COMMA.join(f'"{name}":{value}' for name, value in fields.items()) + "}"


def _is_flagged(revision: Revision) -> bool:
    return revision.facet is not None and revision.facet.flagged
