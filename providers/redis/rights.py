"""What the user that serves may do, as an operator grants it: no command in use needs more."""

from collections.abc import Mapping

from providers.redis.options import KEY_PREFIX

# What follows the key.
_ON_KEYS: Mapping[str, tuple[str, ...]] = {
    "get": (),
    "hdel": ("field",),
    "hget": ("field",),
    "hkeys": (),
    "hmget": ("field",),
    "hset": ("field", "value"),
    "type": (),
    "zadd": ("0", "member"),
    "zlexcount": ("-", "+"),
    "zrangebylex": ("-", "+"),
    "zrangebyscore": ("-inf", "+inf"),
    "zrem": ("member",),
}
_WRITING = frozenset({"hdel", "hset", "zadd", "zrem"})
_OTHERS = ("acl|dryrun", "config|get", "evalsha", "info", "script|load", "select", "time")

COMMANDS = tuple(sorted((*_ON_KEYS, *_OTHERS)))
"""Every command that the adapter and its scripts send once the marker is written.

``select`` is for a database other than 0, ``acl|dryrun`` for servers from version 7 on.
"""


def acl_of(key_prefix: str = KEY_PREFIX) -> str:
    """Return the rules of the user that serves, as in ``ACL SETUSER``."""
    return " ".join((f"~{key_prefix}:*", *(f"+{command}" for command in COMMANDS)))


def questions(user: str, key: str, *, writing: bool = False) -> list[tuple[str, ...]]:
    """Return the commands that ask whether a user may do what scripts do.

    Args:
        user: Its name.
        key: On which it may.
        writing: Only what they write with. Otherwise without what fails before a script runs.
    """
    asked = [
        (name, key, *words) for name, words in _ON_KEYS.items() if not writing or name in _WRITING
    ]
    others = [] if writing else [("time",), ("info",)]
    return [("ACL", "DRYRUN", user, *each) for each in (*asked, *others)]
