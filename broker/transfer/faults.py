"""Faults of a bundle, by their paths in it."""

from collections.abc import Iterable
from typing import Final

from broker.domain.errors import BundleInvalidError, Violation

FAULTS_MAX: Final = 16
"""As many as the edge tells. More are not looked for: a bundle can hold thousands."""


class Faults:
    """Gathers faults below a path."""

    def __init__(self, path: str, found: list[Violation] | None = None) -> None:
        """Begin at a path; ``found`` is shared with whoever else gathers."""
        self._path = path
        self._found = [] if found is None else found

    def below(self, part: str) -> "Faults":
        """Return what gathers into the same list, further down."""
        return Faults(f"{self._path}.{part}", self._found)

    def add(self, field: str, rule: str) -> None:
        """Note one fault of a field below the path; an empty field is the path itself."""
        self.take([Violation(field, rule)])

    def require(self, holds: bool, field: str, rule: str) -> None:
        """Note a fault unless something holds."""
        if not holds:
            self.add(field, rule)

    def take(self, violations: Iterable[Violation]) -> None:
        """Take violations whose fields are relative to the path."""
        for each in violations:
            if not self.full:
                path = f"{self._path}.{each.field}" if each.field else self._path
                self._found.append(Violation(path, each.rule))

    @property
    def full(self) -> bool:
        """Whether there are as many as are told."""
        return len(self._found) >= FAULTS_MAX

    def __bool__(self) -> bool:
        return bool(self._found)

    def refuse_if_any(self) -> None:
        """Raise BundleInvalidError (not retryable) when there are faults."""
        if self._found:
            raise BundleInvalidError(tuple(self._found))
