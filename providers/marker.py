"""Whether the live resource is the configured one: the same question for every adapter (G-3)."""

from providers.errors import ResourceMismatchError
from providers.model import ResourceIdentity

NO_MARKER = "the live resource has no marker: run broker init-resource"


def check_marker(resource: ResourceIdentity, resource_id: object, generation: object) -> None:
    """Compare the configured resource with the live one.

    Raises:
        ResourceMismatchError: They differ, or there is no marker. Not retryable.
    """
    if resource_id is None:
        raise ResourceMismatchError(NO_MARKER)
    if resource.resource_id != resource_id:
        raise ResourceMismatchError("the live resource has another resource id than configured")
    if resource.generation != generation:
        raise ResourceMismatchError("the live resource is of another generation than configured")
