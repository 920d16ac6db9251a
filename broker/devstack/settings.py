"""What a development stack starts the broker with."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from broker.devstack import tokens
from broker.devstack.database import Place
from broker.devstack.memory import MemoryStore
from broker.devstack.owner.model import CatalogEntry, Document

NO_EMBEDDINGS = "none"


@dataclass(frozen=True)
class StackSettings:
    """Everything a broker of this stack needs to know.

    Attributes:
        listen: Host and port to serve on; port 0 takes a free one.
        owner_address: Host and port of the Projects & Config owner.
        events_address: Host and port of the Events service.
        jwks_file: The keys of the token issuer.
        place: The database.
        memory: Where records are kept; every entry of the catalog leads there.
        catalog: Tenants, projects and the catalog as they were at the start.
        embeddings: What texts are turned into vectors with: `none` or `local`.
    """

    listen: str
    owner_address: str
    events_address: str
    jwks_file: Path
    place: Place
    memory: MemoryStore
    catalog: Document
    embeddings: str = NO_EMBEDDINGS

    def served(self) -> dict[str, Any]:
        """Returns the settings of ``broker serve``, without what is for migrations only."""
        return {
            "server": {"listen": self.listen, "reflection": True, "drain_seconds": 5.0},
            "owner": {
                "address": self.owner_address,
                "plaintext_loopback": True,
                "streams": True,
            },
            "events": {
                "address": self.events_address,
                "audience": tokens.AUDIENCE,
                "plaintext_loopback": True,
            },
            "embeddings": {"provider": self.embeddings},
            "store": {"dsn": self.place.access.runtime_dsn},
            "issuers": [
                {
                    "issuer": tokens.ISSUER,
                    "audience": tokens.AUDIENCE,
                    "algorithms": [tokens.ALGORITHM],
                    "jwks_file": str(self.jwks_file),
                }
            ],
            "providers": [
                self._provider(provider_id, entry)
                for provider_id, entry in self.catalog.catalog.items()
            ],
        }

    def _provider(self, provider_id: str, entry: CatalogEntry) -> dict[str, Any]:
        return {
            "provider_id": provider_id,
            "adapter": self.memory.adapter,
            "adapter_version": entry.adapter_version,
            "options_schema_version": entry.options_schema_version,
            "options_revision": entry.options_revision,
            "hosting": entry.hosting,
            "advertised_capabilities": entry.capabilities,
            "options": self.memory.options(),
        }


def to_toml(settings: Mapping[str, Any]) -> str:
    """Returns settings as TOML: tables of scalars and lists, and lists of such tables."""
    parts: list[str] = []
    for name, value in settings.items():
        if isinstance(value, Mapping):
            parts.append(_table(f"[{name}]", value))
        else:
            parts.extend(_table(f"[[{name}]]", each) for each in value)
    return "\n".join(parts)


def _table(heading: str, values: Mapping[str, Any]) -> str:
    lines = (f"{name} = {_value(value)}\n" for name, value in values.items())
    return f"{heading}\n{''.join(lines)}"


def _value(value: Any) -> str:
    if isinstance(value, Mapping):
        inner = ", ".join(f"{name} = {_value(each)}" for name, each in value.items())
        return f"{{ {inner} }}"
    # Strings, numbers, booleans and lists are written alike in JSON and TOML, but for DEL.
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
