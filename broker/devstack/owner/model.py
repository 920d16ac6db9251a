"""The file of tenants, projects, members, runs and catalog, as types.

What the types cannot say, such as that a member's role exists, is checked in ``document``.
"""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field
from pydantic.types import StringConstraints

from broker.devstack.owner.roles import Permission


def _no_duplicates(values: list[str]) -> list[str]:
    repeated = sorted({value for value in values if values.count(value) > 1})
    if repeated:
        raise ValueError(f"named twice: {', '.join(repeated)}")
    return values


def _blank_is_empty(value: Any) -> Any:
    return {} if value is None else value


Identifier = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._:-]{1,256}$")]
Subject = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Text = Annotated[str, StringConstraints(min_length=1, max_length=256)]
Version = Annotated[str, StringConstraints(pattern=r"^(0|[1-9]\d{0,8})(\.(0|[1-9]\d{0,8})){2}$")]
Count = Annotated[int, Field(ge=1, lt=2**31)]
Names = Annotated[list[Identifier], AfterValidator(_no_duplicates)]
SomeNames = Annotated[Names, Field(min_length=1)]
Permissions = Annotated[
    list[Annotated[Permission, Field(strict=False)]], AfterValidator(_no_duplicates)
]
Members = dict[Subject, str]


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class CatalogEntry(_Part):
    """A provider that runs can select."""

    seam: Text = "Memory"
    adapter_version: Version
    options_schema_version: Count = 1
    options_revision: Identifier
    hosting: Identifier
    capabilities: SomeNames


class Selection(_Part):
    """The provider of a run. What is left out comes from the catalog."""

    provider: Identifier | None = None
    adapter_version: Version | None = None
    options_schema_version: Count | None = None
    options_revision: Identifier | None = None
    hosting: Identifier | None = None
    advertised: SomeNames | None = None
    required: Names = []


class Run(_Part):
    """A run whose selection was accepted. Revisions left out are those of its project."""

    memory: Selection = Selection()
    max_prompt_tokens: Count | None = None
    context_revision: Text = "1"
    project_revision: Count | None = None
    configuration_revision: Count | None = None


class Project(_Part):
    """A project of a tenant."""

    revision: Count = 1
    configuration_revision: Count = 1
    members: Members = {}
    runs: dict[Identifier, Annotated[Run, BeforeValidator(_blank_is_empty)]] = {}


class Tenant(_Part):
    """A tenant, its people and its projects."""

    membership_revision: Count = 1
    members: Members = {}
    projects: dict[Identifier, Project] = {}


class RoleEntry(_Part):
    """The revision of a role, and for a role of the file's own what it permits."""

    revision: Count = 1
    permissions: Permissions | None = None
    unless_run_bound: Permissions = []


class Platform(_Part):
    """What belongs to no tenant."""

    runtime_revision: Count = 1
    members: Members = {}


class Document(_Part):
    """The whole file."""

    platform: Platform = Platform()
    catalog: dict[Identifier, CatalogEntry]
    roles: dict[Text, RoleEntry] = {}
    tenants: dict[Identifier, Tenant]
