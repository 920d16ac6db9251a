"""Migrations of schema ``memory``."""

from importlib.resources import files
from pathlib import Path
from typing import Final

from providers.migration import MigrationTree
from providers.postgres.schema import METADATA


def _read(name: str) -> str:
    return files("providers.postgres").joinpath(name).read_text(encoding="utf-8")


TREE: Final = MigrationTree(
    metadata=METADATA,
    folder=Path(__file__).parent,
    closing=(_read("vectors.sql"),),
    grants=_read("grants.sql"),
    lock=0x6B62_6D65_6D6F_7279,
)
