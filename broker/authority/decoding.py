"""Decodes what the owner answers."""

from typing import TypeVar

from google.protobuf.message import DecodeError

from broker.domain.errors import AuthorityResponseInvalidError
from broker.owners.v1 import projects_config_service_pb2 as owners

Response = TypeVar(
    "Response",
    owners.GetRunAuthorityResponse,
    owners.StreamRunAuthorityResponse,
    owners.GetProjectAuthorityResponse,
    owners.GetCallerAuthorityResponse,
)


def decoded(answer: bytes, form: type[Response], bytes_max: int) -> Response:
    """Return an answer of at most so many bytes.

    Raises:
        AuthorityResponseInvalidError: it is larger, or undecodable. Not retryable.
    """
    try:
        if len(answer) <= bytes_max:
            return form.FromString(answer)
    except DecodeError:
        pass  # not chained: its text could repeat the answer
    raise AuthorityResponseInvalidError("the owner's answer is too large or undecodable")
