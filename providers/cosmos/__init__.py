"""The adapter ``cosmos.memory``: records in one container of an Azure Cosmos DB account."""
