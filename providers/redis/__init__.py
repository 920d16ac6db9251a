"""The adapter ``redis.memory``: records in one database of a Redis server that loses nothing."""
