"""Values that options of the command line take."""

from enum import StrEnum


class Embeddings(StrEnum):
    """What a development stack turns texts into vectors with."""

    NONE = "none"
    LOCAL = "local"


class Schema(StrEnum):
    """The schemas of a broker's database."""

    ALL = "all"
    KNOWLEDGE = "knowledge"
    MEMORY = "memory"
