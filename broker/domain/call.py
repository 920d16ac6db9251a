"""Who calls, for what, and until when."""

import asyncio
import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property


@dataclass(frozen=True)
class Caller:
    """The verified token of one call and what it says.

    ``bearer`` is the whole value of ``authorization`` as it came (scheme, space, token) and
    ``tenant_selector`` that of ``x-tenant``: both are forwarded to owners unchanged and go nowhere
    else (004-02). ``tenant_claim`` is an assertion to compare with, never a source of the tenant.
    ``issuer`` and ``subject`` are compared byte for byte.
    """

    issuer: str
    subject: str
    bearer: str = field(repr=False)
    tenant_selector: str | None = None
    tenant_claim: str | None = None
    bound_project_id: str | None = None
    bound_run_id: str | None = None
    purpose: str | None = None

    @property
    def bound(self) -> bool:
        """Whether the token is bound to a project or run."""
        return self.bound_project_id is not None or self.bound_run_id is not None

    @cached_property
    def actor_fingerprint(self) -> str:
        """Lower-case hexadecimal SHA-256 of issuer, newline, subject (004-20)."""
        return hashlib.sha256(f"{self.issuer}\n{self.subject}".encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class RunScope:
    """The run a call acts in. Both parts were checked for syntax."""

    project_id: str
    run_id: str


@dataclass(frozen=True, slots=True)
class ProjectScope:
    """The project a call acts in as a whole, and the runs whose selections are asked for.

    All of it was checked for syntax; no run is there twice.
    """

    project_id: str
    run_ids: tuple[str, ...] = ()


@dataclass(slots=True)
class Call:
    """One call: its caller, its id, its deadline, and how far its commit got.

    ``deadline`` is a time of the event loop's clock, in seconds: that of timers, which may stand
    still while the loop is busy. ``commit_sent`` turns true before a commit is sent, so that a call
    that runs out of time can say whether it may have written. ``events_authorization`` holds every
    value of ``x-events-authorization`` where the method takes one (004-76). ``give_place`` gives up
    the place among the running calls, once: what follows only waits for others.
    """

    caller: Caller
    request_id: str
    deadline: float
    commit_sent: bool = False
    events_authorization: tuple[str | bytes, ...] = field(default=(), repr=False)
    give_place: Callable[[], None] = field(default=lambda: None, repr=False, compare=False)

    def remaining(self) -> float:
        """Seconds left, never negative."""
        return max(0.0, self.deadline - asyncio.get_running_loop().time())
