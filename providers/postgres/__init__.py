"""The adapter ``postgres.native-memory``: records in schema ``memory`` of one database."""
