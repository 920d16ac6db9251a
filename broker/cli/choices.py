"""Values that options of the command line take."""

from enum import StrEnum


class Schema(StrEnum):
    """The schemas of a broker's database."""

    ALL = "all"
    KNOWLEDGE = "knowledge"
    MEMORY = "memory"
