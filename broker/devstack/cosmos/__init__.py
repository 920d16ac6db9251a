"""A stand-in for Azure Cosmos DB."""

from broker.devstack.cosmos.control import Control
from broker.devstack.cosmos.errors import CosmosError, CosmosInUseError, CosmosStartError
from broker.devstack.cosmos.faults import Fault
from broker.devstack.cosmos.server import CosmosServer

__all__ = [
    "Control",
    "CosmosError",
    "CosmosInUseError",
    "CosmosServer",
    "CosmosStartError",
    "Fault",
]
