"""What is asked about compilations, and what is told of them."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from broker.domain.compilations import Compilation, CompilationSummary
from broker.domain.context import Compiled
from broker.domain.requests import Unknown


class Verdict(StrEnum):
    """Whether the text of a compilation can be proved (004-100)."""

    VERIFIED = "verified"
    MISMATCH = "mismatch"
    UNVERIFIABLE = "unverifiable"


@dataclass(frozen=True, slots=True, kw_only=True)
class ListCompilations:
    """Asks for a page of the log. Empty texts and a revision of 0 ask for any."""

    project_id: str
    run_id: str
    record_id: str
    revision: int
    compiled_from: datetime | Unknown | None
    compiled_before: datetime | Unknown | None
    page_size: int
    page_token: str


@dataclass(frozen=True, slots=True, kw_only=True)
class GetCompilation:
    """Asks for one compilation of a run."""

    project_id: str
    run_id: str
    compilation_id: str


@dataclass(frozen=True, slots=True)
class ContextCompiled:
    """A context, and its id in the log; empty where it is not logged."""

    compiled: Compiled
    compilation_id: str


@dataclass(frozen=True, slots=True)
class CompilationsListed:
    """A page of the log, newest first; an empty token is the end."""

    compilations: tuple[CompilationSummary, ...]
    next_page_token: str


@dataclass(frozen=True, slots=True)
class Proved:
    """A compilation and its proof; the text where it is proved."""

    compilation: Compilation
    verdict: Verdict
    text: str | None
