"""The log of compilations: what a text was rendered from, for whom and when (002-34).

An entry means that a text was rendered, not that anybody received it. It holds identifiers,
numbers and hashes: no content, no query, no token.
"""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol

from broker.domain.context import LISTED_MAX, ContextItem, OmittedItem


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilationFields:
    """What is known of every compilation, in a list as by itself.

    The three hashes are 64 lower-case hexadecimal digits. ``query_hash`` is ``None`` where there
    was no query, ``text_hash`` where there was no text.
    """

    compilation_id: str
    tenant_id: str
    project_id: str
    run_id: str
    agent_id: str
    actor_fingerprint: str
    query_hash: str | None
    tokens: int
    """Tokens that were allowed."""
    item_limit: int
    """Memories that were allowed."""
    characters_used: int
    text_hash: str | None
    render_version: int
    create_time: datetime | None = field(default=None, compare=False)
    """When it was logged, on the store's clock; ``None`` before that."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilationSummary(CompilationFields):
    """A compilation as lists have it: how many records entered, not which."""

    item_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Compilation(CompilationFields):
    """A whole compilation.

    ``items`` is what entered, in the order of the text, each record once. ``left_out`` holds at
    most ``LISTED_MAX``, in order of rank; the counts say how many memories and session notes
    were left out and how many decisions were ignored, also beyond those listed.
    """

    items: tuple[ContextItem, ...]
    left_out: tuple[OmittedItem, ...]
    omitted_memory_count: int
    omitted_session_count: int
    ignored_decision_count: int

    def __post_init__(self) -> None:
        """Refuse what the log does not take: a record that entered twice, and a list too long."""
        if len({item.record_id for item in self.items}) < len(self.items):
            raise ValueError("a record enters a context once")
        if len(self.left_out) > LISTED_MAX:
            raise ValueError(f"at most {LISTED_MAX} of what was left out are listed")

    @property
    def item_count(self) -> int:
        """How many records entered."""
        return len(self.items)


@dataclass(frozen=True, slots=True, kw_only=True)
class CompilationQuery:
    """Which compilations of a project are wanted.

    Of a run, of those that a record entered (at a revision, which needs the record), of a time on
    and before another; ``None`` asks for any. ``after`` is the position of the last one that was
    seen. ``limit`` is above 0.
    """

    tenant_id: str
    project_id: str
    run_id: str | None = None
    record_id: str | None = None
    revision: int | None = None
    compiled_from: datetime | None = None
    compiled_before: datetime | None = None
    after: tuple[datetime, str] | None = None
    limit: int

    def __post_init__(self) -> None:
        """Refuse a revision of no record: numbers of different records have nothing in common."""
        if self.revision is not None and self.record_id is None:
            raise ValueError("a revision needs its record")


@dataclass(frozen=True, slots=True)
class CompilationPage:
    """A page in order, and whether more follows it."""

    compilations: tuple[CompilationSummary, ...]
    more: bool


class CompilationLog(Protocol):
    """Keeps compilations for ever. Times out and fails as StorageUnavailableError."""

    async def append(self, compilation: Compilation) -> Compilation:
        """Log a compilation and return it with its time.

        After a failure it may or may not be logged, whole or not at all.
        """
        ...

    async def find(
        self, tenant_id: str, project_id: str, run_id: str, compilation_id: str
    ) -> Compilation | None:
        """Return a compilation of a run, or ``None``."""
        ...

    async def list(self, query: CompilationQuery) -> CompilationPage:
        """Return the newest that are wanted: by time, then by id, both descending."""
        ...
