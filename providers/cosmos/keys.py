"""Where documents are: the partition of a project, and ids that any text can stand for.

Ids of the service forbid four characters and are short; so an id is a letter and a digest of what
the document is really named by. Every document names that too, and it is compared.
"""

from hashlib import sha256

from providers.documents import to_json
from providers.model import ProjectKey, ReceiptKey

PARTITION_PATH = "/projectId"
MARKER_ID = "marker"
MARKER_PARTITION = "marker"
"""No project has it: each of theirs holds a slash."""


def partition_of(project: ProjectKey) -> str:
    """Return the partition of a project: another for each.

    Raises:
        UnicodeError: An identifier holds a surrogate; nothing is stored under such.
    """
    parts = (project.tenant_id, project.project_id)
    return "/".join(each.replace("%", "%25").replace("/", "%2F") for each in parts)


def head_id(record_id: str) -> str:
    """Return the id of a record's head."""
    return _id("h", record_id)


def revision_id(revision_id: str) -> str:
    """Return the id of a revision, so that no revision id is there twice."""
    return _id("r", revision_id)


def revision_ref(record_id: str, number: int) -> str:
    """Return what names a revision by its place; numbers have no slash."""
    return f"{number}/{record_id}"


def segment_id(record_id: str, last: int) -> str:
    """Return the id of a piece of history that ends with this revision."""
    return _id("s", record_id, last)


def receipt_id(key: ReceiptKey) -> str:
    """Return the id of a receipt."""
    return _id("i", key.actor_fingerprint, key.idempotency_key)


def key_id(name: str) -> str:
    """Return the id of a claim key."""
    return _id("k", name)


def counter_id(name: str) -> str:
    """Return the id of a counter."""
    return _id("c", name)


def effect_id(receipt_id: str) -> str:
    """Return the id of an effect."""
    return _id("e", receipt_id)


def stream_id(run_id: str) -> str:
    """Return the id of what says how far a run's effects are delivered."""
    return _id("d", run_id)


def fence_id(name: str) -> str:
    """Return the id of what guards the tombstone of a claim key: one of 256.

    A commit that buries the key replaces it, and so does one that proves that it is not buried.
    """
    return _id("f", name)[:4]


SEGMENTS = "f"
"""The id of what every commit with a history replaces: they come one after the other."""


def _id(letter: str, *name: object) -> str:
    return f"{letter}-{sha256(to_json(name)).hexdigest()}"
