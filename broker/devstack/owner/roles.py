"""What each role permits, and where it can be held."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Permission(StrEnum):
    """Every permission of the contract, as people write it."""

    READ_PROJECTS = "ReadProjects"
    WRITE_PROJECTS = "WriteProjects"
    CREATE_PROJECTS = "CreateProjects"
    READ_RUN_SELECTION = "ReadRunSelection"
    ACCEPT_RUN_SELECTION = "AcceptRunSelection"
    ACCESS_PRIVATE_KNOWLEDGE = "AccessPrivateKnowledge"
    READ_PLATFORM_RUNTIME_DEFAULTS = "ReadPlatformRuntimeDefaults"
    WRITE_PLATFORM_RUNTIME_DEFAULTS = "WritePlatformRuntimeDefaults"


class Place(StrEnum):
    """What a role can be held on."""

    PLATFORM = "platform"
    TENANT = "tenant"
    PROJECT = "project"


@dataclass(frozen=True, slots=True)
class Role:
    """A set of permissions.

    Attributes:
        places: Where it can be held.
        always: What it permits to every token of its holder.
        unless_run_bound: What it permits on top, but not to a token bound to a run.
    """

    places: frozenset[Place]
    always: frozenset[Permission]
    unless_run_bound: frozenset[Permission] = frozenset()

    def permissions(self, *, run_bound: bool) -> frozenset[Permission]:
        """Returns what it permits to a token that is, or is not, bound to a run (004-08)."""
        return self.always if run_bound else self.always | self.unless_run_bound


# 004-07: to read metadata is not to read knowledge. 004-08: to write projects is neither.
BUILT_IN: Mapping[str, Role] = {
    "owner": Role(
        frozenset({Place.PROJECT}),
        frozenset(
            {
                Permission.READ_PROJECTS,
                Permission.READ_RUN_SELECTION,
                Permission.ACCESS_PRIVATE_KNOWLEDGE,
            }
        ),
        frozenset({Permission.WRITE_PROJECTS, Permission.ACCEPT_RUN_SELECTION}),
    ),
    "agent-runtime": Role(
        frozenset({Place.PROJECT}),
        frozenset({Permission.READ_RUN_SELECTION, Permission.ACCESS_PRIVATE_KNOWLEDGE}),
    ),
    "metadata-reader": Role(
        frozenset({Place.PROJECT}),
        frozenset({Permission.READ_PROJECTS, Permission.READ_RUN_SELECTION}),
    ),
    "tenant-admin": Role(
        frozenset({Place.TENANT}),
        frozenset({Permission.READ_PROJECTS, Permission.READ_RUN_SELECTION}),
        frozenset(
            {
                Permission.WRITE_PROJECTS,
                Permission.CREATE_PROJECTS,
                Permission.ACCESS_PRIVATE_KNOWLEDGE,
            }
        ),
    ),
    "platform-operator": Role(
        frozenset({Place.PLATFORM}),
        frozenset({Permission.READ_PROJECTS, Permission.READ_PLATFORM_RUNTIME_DEFAULTS}),
        frozenset({Permission.WRITE_PLATFORM_RUNTIME_DEFAULTS}),
    ),
}
