"""What a scenario needs around a broker, whoever started it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from grpc import aio

from tests.evaluation.calls import Metadata


@dataclass(frozen=True, slots=True)
class Rows:
    """How many rows the store of memories holds of one project."""

    records: int
    revisions: int
    receipts: int


class Site(Protocol):
    """A running broker, its owner, its issuer of tokens, and a look into its store."""

    @property
    def issuer(self) -> str:
        """Who issues the tokens."""
        ...

    def channel(self) -> aio.Channel:
        """Open a channel to the broker."""
        ...

    def metadata(self, subject: str) -> Metadata:
        """Return the credentials of a member."""
        ...

    async def open_project(
        self, project: str, *, members: Sequence[str], owners: Sequence[str], runs: Sequence[str]
    ) -> None:
        """Make a project whose members may use its knowledge in these runs; owners may judge it."""
        ...

    async def dismiss(self, project: str, subject: str) -> None:
        """Take a member's authority away; it is gone when this returns."""
        ...

    async def rows(self, project: str) -> Rows:
        """Count what is stored, past the broker."""
        ...
