"""Migrations of schema ``memory``."""

from importlib.resources import files
from pathlib import Path
from typing import Final

from providers.migration import MigrationTree
from providers.postgres.schema import METADATA

TREE: Final = MigrationTree(
    metadata=METADATA,
    folder=Path(__file__).parent,
    grants=files("providers.postgres").joinpath("grants.sql").read_text(encoding="utf-8"),
    lock=0x6B62_6D65_6D6F_7279,
)
