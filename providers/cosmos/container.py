"""The container as an operator has to make it; the adapter itself makes none (004-34).

``deploy/cosmos`` says the same in Bicep, and ``broker dev`` makes one on the stand-in.
"""

from typing import Any

from providers.cosmos import keys
from providers.cosmos.fitness import COMPOSITES

INDEXED = (
    *("doc", "recordId", "revision", "agentId", "kind", "state", "trust", "weight", "newest"),
    *("place", "ref", "first", "last", "isLive", "isMoved", "runId", "sequence", "delivered"),
    *("termsLength", "model"),
)
LISTS = ("tags", "enters", "ids")
"""Of these each element is indexed. Nothing else is: content least of all."""


def definition() -> dict[str, Any]:
    """Return the container in the form of the service, but for its name.

    Items do not expire, and ``defaultTtl`` is not set at all.
    """
    return {
        "partitionKey": {"paths": [keys.PARTITION_PATH], "kind": "Hash", "version": 2},
        "indexingPolicy": {
            "indexingMode": "consistent",
            "automatic": True,
            "includedPaths": [
                *({"path": f"/{name}/?"} for name in INDEXED),
                *({"path": f"/{name}/[]/?"} for name in LISTS),
            ],
            "excludedPaths": [{"path": "/*"}, {"path": '/"_etag"/?'}],
            "compositeIndexes": [
                [{"path": path, "order": "ascending"} for path in paths] for paths in COMPOSITES
            ],
        },
    }
