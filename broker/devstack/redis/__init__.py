"""A private Redis-compatible server over TLS for development and tests."""

from broker.devstack.redis.binaries import Flavour
from broker.devstack.redis.server import RedisServer

__all__ = ["Flavour", "RedisServer"]
