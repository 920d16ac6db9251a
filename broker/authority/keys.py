"""The public keys of issuers: from a file or over https, never older than ten minutes."""

import asyncio
import ssl
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import urlsplit

import httpx

from broker.authority.fetch import FetchError, fetch_document
from broker.authority.issuers import KeysFile, KeysUrl
from broker.authority.jwk import DOCUMENT_BYTES_MAX, VerificationKey, read_key_set
from broker.domain.errors import KeysUnavailableError
from broker.telemetry.logs import logger

AGE_S_MAX = 600.0
"""Keys that could not be confirmed for longer are not used."""

REFRESH_S = 300.0
"""Keys older than this are fetched again in the background."""

RETRY_S = 5.0
"""At least this long between two fetches because of age."""

UNKNOWN_KEY_S = 30.0
"""At least this long between a fetch and the next one because of an unknown key."""

FETCH_S = 5.0
"""One fetch may take this long."""

UNUSABLE = "key set cannot be used"
UNFETCHED = "key set cannot be fetched"


@dataclass(frozen=True, slots=True)
class KeySet:
    """The keys of one issuer by ``kid``. ``generation`` grows when any of them changes."""

    generation: int
    keys: Mapping[str, VerificationKey]


class KeySource(Protocol):
    """Where the keys of one issuer come from."""

    async def current(self) -> KeySet:
        """Return keys that were confirmed within the last ten minutes.

        Raises:
            KeysUnavailableError: there are none. Retryable.
        """
        ...

    async def renewed(self) -> KeySet:
        """Return the keys after an attempt, if one is due, to find a key that was unknown.

        Raises:
            KeysUnavailableError: the keys could not be confirmed. Retryable.
        """
        ...

    async def aclose(self) -> None:
        """Stop what runs in the background."""
        ...


class _Held:
    """The last good keys and when they were confirmed."""

    def __init__(self) -> None:
        self._document = b""
        self._confirmed = 0.0
        self.keys: KeySet | None = None

    def accept(self, document: bytes, now: float) -> None:
        if self.keys is None or document != self._document:
            generation = 1 if self.keys is None else self.keys.generation + 1
            self.keys = KeySet(generation, read_key_set(document))
            self._document = document
        self._confirmed = now

    def confirm(self, now: float) -> None:
        self._confirmed = now

    def age(self, now: float) -> float:
        return now - self._confirmed

    def usable(self, now: float) -> KeySet:
        if self.keys is None or self.age(now) > AGE_S_MAX:
            raise KeysUnavailableError("the keys of the token's issuer cannot be had now")
        return self.keys


class FileKeys:
    """Keys from a file. Every call looks whether the file changed, and reads it if so.

    A file that turns unreadable or malformed leaves the last good keys in use for ten minutes.
    """

    def __init__(self, path: Path, monotonic: Callable[[], float]) -> None:
        self._path = path
        self._monotonic = monotonic
        self._held = _Held()
        self._seen: tuple[int, ...] | None = None
        self._trouble: str | None = None

    async def current(self) -> KeySet:
        """Fulfil ``KeySource``."""
        try:
            self._look()
        except OSError as error:
            self._seen = None
            self._complain(type(error).__name__)
        except ValueError:
            self._complain("malformed")
        return self._held.usable(self._monotonic())

    async def renewed(self) -> KeySet:
        """Fulfil ``KeySource``; ``current`` is never behind the file."""
        return await self.current()

    async def aclose(self) -> None:
        """Fulfil ``KeySource``; nothing runs."""

    def _look(self) -> None:
        status = self._path.stat()
        seen = (status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino)
        if seen != self._seen:
            self._seen = seen
            if status.st_size > DOCUMENT_BYTES_MAX:
                raise ValueError("the key set is larger than 256 KiB")
            self._held.accept(self._path.read_bytes(), self._monotonic())
            self._trouble = None
        elif self._trouble is None:
            self._held.confirm(self._monotonic())

    def _complain(self, trouble: str) -> None:
        if self._trouble != trouble:
            logger("keys").warning(UNUSABLE, what=self._path.name, reason=trouble)
        self._trouble = trouble


class HttpsKeys:
    """Keys over https: no redirects, no proxies, 256 KiB and 5 seconds, one fetch in flight.

    ``context`` verifies the server. The fetch belongs to no caller: who stops waiting for it does
    not stop it. ``aclose`` does.
    """

    def __init__(self, url: str, context: ssl.SSLContext, monotonic: Callable[[], float]) -> None:
        self._url = url
        self._host = urlsplit(url).hostname
        self._monotonic = monotonic
        self._held = _Held()
        self._tried: float | None = None
        self._trouble: tuple[str, str] | None = None
        self._fetching: asyncio.Task[None] | None = None
        self._client = httpx.AsyncClient(
            verify=context,
            follow_redirects=False,
            trust_env=False,
            timeout=FETCH_S,
            limits=httpx.Limits(max_connections=1, max_keepalive_connections=0),
            headers={"accept": "application/jwk-set+json, application/json"},
        )
        self._client.headers["accept-encoding"] = "identity"

    async def current(self) -> KeySet:
        """Fulfil ``KeySource``; keys older than five minutes are renewed in the background."""
        now = self._monotonic()
        if self._held.keys is None or self._held.age(now) > AGE_S_MAX:
            await self._attempt(RETRY_S)
        elif self._held.age(now) > REFRESH_S:
            self._start(RETRY_S)
        return self._held.usable(self._monotonic())

    async def renewed(self) -> KeySet:
        """Fulfil ``KeySource``; at most one fetch in 30 seconds."""
        await self._attempt(UNKNOWN_KEY_S)
        if self._trouble is not None:
            raise KeysUnavailableError("the keys of the token's issuer cannot be had now")
        return self._held.usable(self._monotonic())

    async def aclose(self) -> None:
        """Stop a running fetch and close the connection."""
        if self._fetching is not None:
            self._fetching.cancel()
            await asyncio.wait([self._fetching])
        await self._client.aclose()

    async def _attempt(self, pause_s: float) -> None:
        fetching = self._start(pause_s)
        if fetching is not None:
            await asyncio.shield(fetching)

    def _start(self, pause_s: float) -> asyncio.Task[None] | None:
        now = self._monotonic()
        if self._fetching is not None and not self._fetching.done():
            return self._fetching
        if self._tried is not None and now - self._tried < pause_s:
            return None
        self._tried = now
        self._fetching = asyncio.create_task(self._fetch())
        return self._fetching

    async def _fetch(self) -> None:
        try:
            document = await fetch_document(
                self._client, self._url, bytes_max=DOCUMENT_BYTES_MAX, seconds=FETCH_S
            )
            self._held.accept(document, self._monotonic())
            self._trouble = None
        except FetchError as error:  # its text says nothing of the answer
            self._complain(UNFETCHED, str(error))
        except ValueError:
            self._complain(UNUSABLE, "malformed")

    def _complain(self, event: str, reason: str) -> None:
        if self._trouble != (event, reason):
            logger("keys").warning(event, what=self._host, reason=reason)
        self._trouble = (event, reason)


def key_source(keys: KeysFile | KeysUrl, monotonic: Callable[[], float]) -> KeySource:
    """Make the source that the settings name.

    Raises:
        OSError: the file of root certificates cannot be read.
    """
    if isinstance(keys, KeysFile):
        return FileKeys(keys.path, monotonic)
    context = ssl.create_default_context(cafile=keys.ca_file)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    return HttpsKeys(keys.url, context, monotonic)
