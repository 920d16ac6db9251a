"""What to look for: text that nothing can be stored under finds nothing (G-1, G-10)."""

from collections.abc import Iterable

from providers.model import ProjectKey
from providers.rules import is_storable

_NOWHERE = "\0"


def findable(text: str) -> str:
    """Return what to look for; text that nothing can be stored under finds nothing (G-1)."""
    return text if is_storable(text) else _NOWHERE


def all_findable(texts: Iterable[str]) -> list[str]:
    """Return what to look for among several; see ``findable``."""
    return [findable(text) for text in texts]


def findable_project(project: ProjectKey) -> ProjectKey:
    """Return where to look; see ``findable``."""
    return ProjectKey(findable(project.tenant_id), findable(project.project_id))
