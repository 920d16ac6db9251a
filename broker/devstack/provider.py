"""Which store a development stack keeps memory in."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Provider(StrEnum):
    """What ``broker dev --provider`` takes."""

    POSTGRES = "postgres"
    REDIS = "redis"
    COSMOS = "cosmos"


@dataclass(frozen=True)
class Listing:
    """How the one entry of the playground's catalog reads.

    Attributes:
        provider_id: Its name, which is the adapter's too.
        options_revision: The name of the options.
        hosting: Who runs the store, in a word.
    """

    provider_id: str
    options_revision: str
    hosting: str


LISTINGS = {
    Provider.POSTGRES: Listing("postgres.native-memory", "native-postgres-memory-v1", "native"),
    Provider.REDIS: Listing("redis.memory", "redis-memory-v1", "platform"),
    Provider.COSMOS: Listing("cosmos.memory", "cosmos-memory-v1", "platform"),
}
