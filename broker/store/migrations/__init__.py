"""Migrations of schema ``knowledge``."""

from importlib.resources import files
from pathlib import Path
from typing import Final

from broker.store.schema import metadata
from providers.migration import MigrationTree

TREE: Final = MigrationTree(
    metadata=metadata,
    folder=Path(__file__).parent,
    grants=files("broker.store").joinpath("grants.sql").read_text(encoding="utf-8"),
    lock=0x6B62_6B6E_6F77_6C65,
)
