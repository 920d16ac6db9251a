"""Files of the local model: found without running code of their packages, and proved by hash."""

import hashlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

EXTRA: Final = 'pip install "knowledge-broker[embeddings]"'


class ModelUnusableError(Exception):
    """The local model cannot be run. Says what is missing or wrong; not retryable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PinnedFile:
    """A file inside an installed package, and the SHA-256 that it must have, as hex."""

    package: str
    path: str
    sha256: str


def read_pinned(file: PinnedFile) -> bytes:
    """Return what the file holds.

    Raises:
        ModelUnusableError: the package or the file is not there, or it is another file.
    """
    spec = find_spec(file.package)  # of a package at the top: nothing of it is run
    folders = spec.submodule_search_locations if spec is not None else None
    if not folders:
        raise ModelUnusableError(f"the package {file.package} is not installed: {EXTRA}")
    try:
        content = (Path(folders[0]) / file.path).read_bytes()
    except OSError as error:
        raise ModelUnusableError(
            f"{file.path} of the package {file.package} cannot be read: {error.strerror}"
        ) from error
    if hashlib.sha256(content).hexdigest() != file.sha256:
        raise ModelUnusableError(
            f"{file.path} of the package {file.package} is not the file this broker was made for"
        )
    return content
