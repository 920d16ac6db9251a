"""Reads the file of tenants, projects, members, runs and catalog; says what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yaml
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from broker.devstack.owner.model import Document, Members, Run
from broker.devstack.owner.roles import BUILT_IN, Place, Role

_SCALARS = (bool, int, float)


class DocumentInvalidError(Exception):
    """The file cannot be used. Each problem begins with the path of the entry at fault."""

    def __init__(self, problems: list[str]) -> None:
        """Keeps the problems, at least one."""
        super().__init__("; ".join(problems))
        self.problems = problems


def parse(content: bytes | str) -> Document:
    """Returns the checked document.

    Raises:
        DocumentInvalidError: It is not YAML, or breaks a rule of the form.
    """
    document = validate(load(content))
    problems = [*_roles(document), *_members(document), *_selections(document)]
    if problems:
        raise DocumentInvalidError(problems)
    return document


def load(content: bytes | str) -> Any:
    """Returns what the YAML says, unchecked.

    Raises:
        DocumentInvalidError: It is not YAML, or a key stands twice in one mapping.
    """
    try:
        return yaml.load(content, _Loader)  # noqa: S506 (a SafeLoader)
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise DocumentInvalidError([f"not readable as YAML: {error}"]) from error


def validate(loaded: Any) -> Document:
    """Returns the document as types; references between its parts are not checked.

    Raises:
        DocumentInvalidError: An entry has the wrong form.
    """
    if loaded is None:
        raise DocumentInvalidError(["the file is empty"])
    try:
        return Document.model_validate(loaded)
    except ValidationError as error:
        raise DocumentInvalidError([_problem(each) for each in error.errors()]) from error


def roles(document: Document) -> dict[str, Role]:
    """Returns the built-in roles and the document's own, by name."""
    own = {
        name: Role(
            frozenset(Place), frozenset(entry.permissions or ()), frozenset(entry.unless_run_bound)
        )
        for name, entry in document.roles.items()
    }
    return own | dict(BUILT_IN)


class _Loader(yaml.SafeLoader):
    """Refuses a key that stands twice, where YAML would let the last one win."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen = set()
        for key_node, _ in node.value:
            if key_node.value in seen and isinstance(key_node, yaml.ScalarNode):
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key_node.value!r} stands here twice", key_node.start_mark
                )
            if isinstance(key_node, yaml.ScalarNode):
                seen.add(key_node.value)
        return super().construct_mapping(node, deep)


def _problem(error: ErrorDetails) -> str:
    path = ".".join(str(part) for part in error["loc"]) or "the file"
    hint = ""
    if error["type"] == "string_type" and isinstance(error["input"], _SCALARS):
        hint = f" (write it in quotes: YAML reads it as {error['input']!r})"
    return f"{path}: {error['msg']}{hint}"


def _roles(document: Document) -> Iterator[str]:
    for name, entry in document.roles.items():
        own = entry.permissions is not None or entry.unless_run_bound
        if name in BUILT_IN and own:
            yield f"roles.{name}: what a built-in role permits cannot be changed, only its revision"
        if name not in BUILT_IN and entry.permissions is None:
            yield f"roles.{name}: a role of your own needs `permissions`"


def _members(document: Document) -> Iterator[str]:
    yield from _members_at(document, "platform", Place.PLATFORM, document.platform.members)
    for tenant_id, tenant in document.tenants.items():
        at = f"tenants.{tenant_id}"
        yield from _members_at(document, at, Place.TENANT, tenant.members)
        for project_id, project in tenant.projects.items():
            here = f"{at}.projects.{project_id}"
            yield from _members_at(document, here, Place.PROJECT, project.members)


def _members_at(document: Document, at: str, place: Place, members: Members) -> Iterator[str]:
    fitting = [name for name, role in roles(document).items() if place in role.places]
    for subject, name in members.items():
        if name not in fitting:
            known = ", ".join(sorted(fitting))
            yield f"{at}.members.{subject}: {name!r} is no role of a {place}; there are {known}"


def _selections(document: Document) -> Iterator[str]:
    for tenant_id, tenant in document.tenants.items():
        for project_id, project in tenant.projects.items():
            for run_id, run in project.runs.items():
                at = f"tenants.{tenant_id}.projects.{project_id}.runs.{run_id}.memory"
                yield from (f"{at}.{problem}" for problem in _selection(document, run))


def _selection(document: Document, run: Run) -> Iterator[str]:
    name = run.memory.provider
    if name is None and len(document.catalog) != 1:
        yield f"provider: needed, as the catalog has {len(document.catalog)} entries"
    elif name is not None and name not in document.catalog:
        yield f"provider: {name!r} is not in the catalog"
    else:
        entry = document.catalog[name or next(iter(document.catalog))]
        advertised = entry.capabilities if run.memory.advertised is None else run.memory.advertised
        missing = sorted(set(run.memory.required) - set(advertised))
        if missing:
            yield f"required: not advertised: {', '.join(missing)}"
