"""The names of keys and fields. Every key of a project has the same hash tag (clause G-2)."""

from hashlib import sha256

import orjson

from providers.documents import taken, to_json
from providers.errors import StoredDataInvalidError
from providers.model import ProjectKey, ResourceIdentity, RevisionRef

_TAG_LENGTH = 16


def marker_key(prefix: str) -> str:
    """Return the key of the resource's marker."""
    return f"{prefix}:marker"


def writes_key(prefix: str) -> str:
    """Return the key of the hash that counts the resource's writes."""
    return f"{prefix}:writes"


def marker_value(resource: ResourceIdentity) -> bytes:
    """Return what the marker of a resource holds; scripts compare it as it is."""
    return to_json((resource.resource_id, resource.generation))


def marker_of(value: bytes | None) -> tuple[object, object]:
    """Return the resource id and the generation that a marker names.

    Raises:
        StoredDataInvalidError: It names none. Not retryable.
    """
    if value is None:
        return None, None
    try:
        resource_id, generation = orjson.loads(value)
        return taken(str)(resource_id), taken(int)(generation)
    except (TypeError, ValueError):
        raise StoredDataInvalidError("the stored marker is damaged") from None


def project_digest(project: ProjectKey) -> str:
    """Return what stands for a project: 64 hex digits, another for each.

    Raises:
        TypeError: An identifier holds a surrogate; nothing is stored under such.
    """
    return sha256(to_json((project.tenant_id, project.project_id))).hexdigest()


def base_key(prefix: str, digest: str) -> str:
    """Return what begins every key of a project."""
    return f"{prefix}:{{{digest}}}:"


def tag_of(digest: str) -> str:
    """Return what every document of a project begins with: what belongs elsewhere is told."""
    return digest[:_TAG_LENGTH]


def revision_field(ref: RevisionRef) -> str:
    """Return the field of a revision; numbers have no slash."""
    return f"{ref.revision}/{ref.record_id}"


def receipt_field(actor_fingerprint: str, idempotency_key: str) -> str:
    """Return the field of a receipt; fingerprints have no slash."""
    return f"{actor_fingerprint}/{idempotency_key}"
