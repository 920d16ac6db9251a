"""The serving process of the stand-in for Cosmos DB."""
