"""Whether a server can lose nothing, by what its scripts, settings and rights say (004-38, 004-39).

Each refusal names one fact and tells an operator what must be otherwise.
"""

from collections.abc import Mapping, Sequence

from providers.errors import NegotiationRefusedError
from providers.redis import errors
from providers.redis.connections import Command, Link, Reply
from providers.redis.rights import questions

_DEMANDED = {"appendonly": "yes", "appendfsync": "always", "no-appendfsync-on-rewrite": "no"}

# What scripts call it, the fact, and what it means.
_FAULTS: Mapping[str, tuple[str, str]] = {
    "replica": ("replica", "the server is a replica"),
    "replicas": ("replica", "the server has replicas"),
    "aof_off": ("aof", "the append-only file is off: appendonly must be yes"),
    "aof_failed": (
        "aof",
        "the server could not write its append-only file: aof_last_write_status is not ok",
    ),
    "aof_begins": (
        "aof",
        "the append-only file is being rewritten although it has not grown, as it is after it was"
        " switched on: nothing is kept before that has ended",
    ),
    "eviction": ("eviction", "maxmemory-policy must be noeviction"),
    "evicted": (
        "eviction",
        "the server has evicted keys since it started: some of what it kept may be gone",
    ),
    "expiring_key": ("expiring_key", "a key in the database expires, whosever it is"),
    "expiring_field": (
        "expiring_key",
        "a field of a hash in the database expires, or the server does not tell whether one does",
    ),
}
_LOADING = (
    "the default user may be off, but needs every right on the keys: what it might not have written"
    " this server leaves out when it starts"
)


def unfit(faults: Sequence[bytes]) -> NegotiationRefusedError:
    """Return the refusal of a server with these faults; the first says its ``fact``."""
    told = [_FAULTS[fault.decode()] for fault in faults]
    return NegotiationRefusedError("; ".join(text for _, text in told), fact=told[0][0])


def check_settings(reply: Reply) -> None:
    """Refuse a server whose settings let it lose what it acknowledged.

    Args:
        reply: To the command ``Link.settings``.

    Raises:
        NegotiationRefusedError: One is otherwise, or the user may not look. Not retryable.
        ProviderUnavailableError: The server did not say. Retryable.
    """
    if isinstance(reply, Exception):
        raise errors.translate(reply) from errors.bare(reply)
    found = dict(zip(reply[::2], reply[1::2], strict=True))
    wrong = [
        f"{name} must be {value}"
        for name, value in _DEMANDED.items()
        if found.get(name.encode()) != value.encode()
    ]
    if wrong:
        raise NegotiationRefusedError("; ".join(wrong), fact="aof")


async def check_rights(link: Link, user: str, key: str) -> None:
    """Refuse a server on which a user lacks a right; one that cannot be asked is not refused.

    Args:
        link: To the server.
        user: The one that serves.
        key: One that begins as all of the resource do.

    Raises:
        NegotiationRefusedError: It does, with the fact ``rights``. Not retryable.
        ProviderUnavailableError: The server did not say. Retryable.
    """
    if not link.tells_rights:
        return
    own = questions(user, key)
    replies = await link.exchange(own)
    _check_told(replies)
    for question, reply in zip(own, replies, strict=True):
        if reply != b"OK":
            command = question[3].lower()
            raise NegotiationRefusedError(f"the user lacks the right to {command}", fact="rights")


def loading_questions(link: Link, key: str) -> list[Command]:
    """Return what to ask a server that may leave out what was written when it starts again.

    It does so where the default user lacks a right; the replies are for ``check_loading``.

    Args:
        link: To the server.
        key: One that begins as all of the resource do.
    """
    return list(questions("default", key, writing=True)) if link.skips_on_loading else []


def check_loading(replies: Sequence[Reply]) -> None:
    """Refuse a server that would not read back all that is written.

    Raises:
        NegotiationRefusedError: With the fact ``aof``. Not retryable.
        ProviderUnavailableError: The server did not say. Retryable.
    """
    _check_told(replies)
    if any(reply != b"OK" for reply in replies):
        raise NegotiationRefusedError(_LOADING, fact="aof")


def _check_told(replies: Sequence[Reply]) -> None:
    for reply in replies:
        if isinstance(reply, Exception):
            raise errors.translate(reply) from errors.bare(reply)
