"""What the owner's checked answer says, as the broker uses it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple

from broker.domain.call import Call, ProjectScope, RunScope
from broker.domain.errors import BrokerError


class Permission(StrEnum):
    """The permissions the broker asks for, as callers read them in errors."""

    ACCESS_PRIVATE_KNOWLEDGE = "AccessPrivateKnowledge"
    READ_RUN_SELECTION = "ReadRunSelection"
    WRITE_PROJECTS = "WriteProjects"


class GrantedOn(StrEnum):
    """What a grant that counts is on; one on the platform never counts (004-06)."""

    TENANT = "tenant"
    PROJECT = "project"


class Grant(NamedTuple):
    """The one grant by which a permission is held: on the project, else on the tenant (004-18)."""

    on: GrantedOn
    resource_id: str
    role_revision: int


@dataclass(frozen=True, slots=True)
class Need:
    """What one method needs beside a valid token: permissions, and whether it must be unbound.

    AccessPrivateKnowledge and WriteProjects count on the project or the caller's tenant,
    ReadRunSelection on the project itself (004-06, 004-09). Platform grants never count.
    """

    permissions: frozenset[Permission]
    unbound: bool = False


KNOWLEDGE = Need(frozenset({Permission.ACCESS_PRIVATE_KNOWLEDGE, Permission.READ_RUN_SELECTION}))
"""What every record method needs."""

EFFECTS = Need(frozenset({Permission.WRITE_PROJECTS, Permission.READ_RUN_SELECTION}))
"""What it takes to read and deliver accepted effects."""

WHOLE_PROJECT = Need(KNOWLEDGE.permissions, unbound=True)
"""What it takes to look at the records of all agents of a project (004-69)."""

SELECTIONS = Need(frozenset({Permission.READ_RUN_SELECTION}))
"""What it takes to know which providers there are."""


class Candidate(NamedTuple):
    """One selected provider, as the catalog described it when the run was accepted (004-22)."""

    seam: str
    provider_id: str
    adapter_version: str
    options_schema_version: int
    options_revision: str
    hosting: str
    advertised: frozenset[str]
    required: frozenset[str]


class RunSelection(NamedTuple):
    """A checked run selection. ``memory`` is its one exclusive Memory candidate (004-21)."""

    tenant_id: str
    project_id: str
    run_id: str
    project_revision: int
    project_configuration_revision: int
    platform_runtime_revision: int
    context_revision: str
    memory: Candidate
    max_prompt_tokens: int | None


RunSelections = Mapping[str, RunSelection | BrokerError]
"""What the owner said about several runs, in the order asked: a selection, or the refusal to give.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Authorized:
    """The outcome of one check that passed. Lives as long as its call and is never kept.

    ``grants`` holds the permissions the caller has here, each with the grant that counts.
    ``selection`` is that of the same snapshot, or the refusal to give once permissions and fields
    have been judged. ``answer`` is what the owner said, as it came: where check ② is told the very
    same, nothing has to be read again.
    """

    call: Call
    scope: RunScope | ProjectScope
    tenant_id: str
    membership_revision: int
    grants: Mapping[Permission, Grant]
    selection: RunSelection | BrokerError
    answer: object = field(default=None, repr=False, compare=False)

    @property
    def grants_write(self) -> bool:
        """Whether WriteProjects is held on the project or the caller's tenant."""
        return Permission.WRITE_PROJECTS in self.grants

    def selected(self) -> RunSelection:
        """Return the run selection.

        Raises:
            RunSelectionNotFoundError: the run has none. Not retryable.
            RunSelectionInvalidError: it is malformed or foreign. Not retryable.
            ProviderSelectionInvalidError: not exactly one exclusive Memory candidate. Not
            retryable.
        """
        if isinstance(self.selection, BrokerError):
            raise self.selection
        return self.selection
