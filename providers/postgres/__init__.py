"""The adapter ``postgres.native-memory``: records in schema ``memory`` of one PostgreSQL database."""
