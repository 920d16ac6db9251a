"""The canonical form of a bundle: protobuf JSON, sorted keys, no white space, UTF-8.

What measures a bundle, what its fingerprint is taken over, and what a file of one holds are the
same bytes.
"""

import json
from typing import Final

from google.protobuf import json_format

from broker.api.v1 import transfer_pb2

SAID_MAX: Final = 200
"""Characters of an error about a file; they may repeat what is in it."""


class NoBundleError(ValueError):
    """Bytes are no bundle in the form of protobuf JSON."""


def canonical_json(message: transfer_pb2.Bundle) -> bytes:
    """Write a bundle. Unset fields and unknown ones are left out; non-ASCII text is kept.

    Raises:
        ValueError: a time or a number of it has no form as JSON.
    """
    try:
        document = json_format.MessageToDict(message)
    except json_format.Error as error:
        raise ValueError("a value has no form as JSON") from error
    return json.dumps(
        document, ensure_ascii=False, allow_nan=False, separators=(",", ":"), sort_keys=True
    ).encode()


def read_json(raw: bytes) -> transfer_pb2.Bundle:
    """Read a bundle, in canonical form or another that means the same.

    Raises:
        NoBundleError: it is none, or has a field that is not known here.
    """
    if not raw.lstrip().startswith(b"{"):
        raise NoBundleError("it is no JSON object")
    try:
        return json_format.Parse(raw, transfer_pb2.Bundle())
    except (json_format.Error, ValueError, RecursionError) as error:
        raise NoBundleError(_said(str(error))) from error


def _said(text: str) -> str:
    """Return the beginning of an error, in one line, with nothing that a terminal obeys."""
    shown = "".join(each if each.isprintable() else " " for each in text[:SAID_MAX])
    return shown if len(text) <= SAID_MAX else f"{shown}…"
