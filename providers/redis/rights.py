"""What the user that serves may do, as an operator grants it: no command in use needs more."""

from providers.redis.options import KEY_PREFIX

COMMANDS = (
    "acl|dryrun",
    "auth",
    "config|get",
    "evalsha",
    "get",
    "hdel",
    "hexists",
    "hget",
    "hset",
    "info",
    "sadd",
    "script|load",
    "select",
    "sismember",
    "smembers",
    "time",
    "type",
    "zadd",
    "zcard",
    "zrangebylex",
    "zrangebyscore",
    "zrem",
)
"""Every command that the adapter and its scripts send once the marker is written."""


def acl_of(key_prefix: str = KEY_PREFIX) -> str:
    """Return the rules of the user that serves, as in ``ACL SETUSER``."""
    return " ".join((f"~{key_prefix}:*", *(f"+{command}" for command in COMMANDS)))
