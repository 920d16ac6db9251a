"""The scripts, as the server is given them: each is the prelude and a file of its own."""

from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha1
from importlib.resources import files

_HERE = files(__package__)


class Script(StrEnum):
    """What a call runs on the server; the value is the name of its file."""

    READY = "ready"
    LOAD = "load"
    COMMIT = "commit"
    REVISIONS = "revisions"
    SEARCH = "search"
    CANDIDATES = "candidates"
    EXPORT = "export"
    EFFECT = "effect"
    PENDING = "pending"
    DELIVER = "deliver"
    RECALL = "recall"
    TAGGED = "tagged"
    UNINDEXED = "unindexed"
    INDEX = "index"


WRITING = frozenset({Script.COMMIT, Script.DELIVER, Script.INDEX})
"""Those that write; each has a check of its own of what it would be worth."""


@dataclass(frozen=True, slots=True)
class Loaded:
    """A script's text for one sort of server, and the digest that the server knows it by."""

    text: bytes
    digest: str


def _loaded(script: Script, *, flagged: bool) -> Loaded:
    """Return a script; ``flagged``: with the line that the server learns from what it may do.

    A server that knows the line refuses a script that writes as a whole when it has no memory left,
    and runs one that only reads. One before 7 would not take it for a comment.
    """
    flags = b"#!lua\n" if script in WRITING else b"#!lua flags=no-writes\n"
    parts = (_HERE.joinpath(name).read_bytes() for name in ("prelude.lua", f"{script}.lua"))
    text = (flags if flagged else b"") + b"".join(parts)
    return Loaded(text, sha1(text, usedforsecurity=False).hexdigest())


FLAGGED = {script: _loaded(script, flagged=True) for script in Script}
PLAIN = {script: _loaded(script, flagged=False) for script in Script}
