"""The file of tenants, projects, members and runs that a development machine begins with."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.resources import files as resources
from pathlib import Path
from typing import Any

import yaml

from broker.devstack import files
from broker.devstack.owner import document
from broker.devstack.owner.model import Document
from broker.devstack.provider import LISTINGS, Provider


def template(provider: Provider = Provider.POSTGRES) -> str:
    """Returns the file as it is shipped, comments included, with the provider in its catalog."""
    text = (resources("broker.devstack") / "playground.yaml").read_text(encoding="utf-8")
    shipped, listed = LISTINGS[Provider.POSTGRES], LISTINGS[provider]
    text = text.replace(f"{shipped.provider_id}:", f"{listed.provider_id}:")
    text = text.replace(shipped.options_revision, listed.options_revision)
    return text.replace(f"hosting: {shipped.hosting}", f"hosting: {listed.hosting}")


def ensure(path: Path, provider: Provider = Provider.POSTGRES) -> bool:
    """Writes the shipped file where there is none, and says whether it did."""
    if path.exists():
        return False
    files.replace(path, template(provider), files.PRIVATE)
    return True


def read(path: Path) -> Document:
    """Returns the checked content.

    Raises:
        DocumentInvalidError: The file breaks a rule.
    """
    return document.parse(path.read_bytes())


@contextmanager
def edited(path: Path) -> Iterator[Any]:
    """Hands out the content as plain mappings, and replaces the file with what became of them.

    Comments are lost. Two editors at a time must agree between themselves.

    Raises:
        DocumentInvalidError: The result breaks a rule; the file is left as it was.
    """
    loaded = document.load(path.read_bytes())
    yield loaded
    changed = yaml.safe_dump(loaded, sort_keys=False, allow_unicode=True)
    document.parse(changed)
    files.replace(path, changed, files.PRIVATE)


def grant(path: Path, *, subject: str, role: str, tenant: str, project: str | None = None) -> None:
    """Gives somebody a role, in place of one they have there.

    Args:
        path: The file.
        subject: Who gets it.
        role: The role's name.
        tenant: The tenant, which must exist.
        project: The project in it; without one the role is held on the tenant.
    """
    with edited(path) as content:
        _members(content, tenant, project)[subject] = role


def revoke(path: Path, *, subject: str, tenant: str, project: str | None = None) -> None:
    """Takes somebody's role away; that they had one is not required.

    Args:
        path: The file.
        subject: Whose role.
        tenant: The tenant, which must exist.
        project: The project in it; without one the role on the tenant.
    """
    with edited(path) as content:
        _members(content, tenant, project).pop(subject, None)


def _members(content: Any, tenant: str, project: str | None) -> dict[str, str]:
    entry = content["tenants"][tenant]
    entry["membership_revision"] = entry.get("membership_revision", 1) + 1
    place = entry if project is None else entry["projects"][project]
    members: dict[str, str] = place.setdefault("members", {})
    return members
