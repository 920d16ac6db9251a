"""One endpoint of embeddings, asked over https at an address that was looked at first."""

import ssl
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from typing import Final

import httpx
import orjson

from broker.embeddings.addresses import Resolve, resolved, screened
from broker.embeddings.answers import AnswerUnusableError, answer_bytes_max, read_answer
from providers.entries import Vector

CONNECTIONS_MAX: Final = 8


class EndpointDownError(Exception):
    """The endpoint cannot be reached, or says that it fails. Retryable."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointOptions:
    """An endpoint: what it is, and what is asked of it.

    ``url`` is what ``/embeddings`` is put after. ``key`` goes nowhere but into the Authorization of
    a request. ``code_points_max`` is how much of a text is sent, ``timeout_s`` what a request may
    take.
    """

    url: str
    model: str
    dimension: int
    key: str | None = field(default=None, repr=False)
    ca_file: Path | None = None
    allow_loopback: bool = False
    code_points_max: int = 8_000
    timeout_s: float = 2.0


class Endpoint:
    """Speaks to it: no redirects, no proxies, nothing decompressed, a bounded answer."""

    def __init__(self, options: EndpointOptions, resolve: Resolve = resolved) -> None:
        """Open nothing yet.

        Raises:
            OSError: the file of authorities cannot be read.
        """
        self.options = options
        self._resolve = resolve
        self._url = httpx.URL(f"{options.url.rstrip('/')}/embeddings")
        context = ssl.create_default_context(cafile=options.ca_file)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        self._client = httpx.AsyncClient(
            verify=context,
            follow_redirects=False,
            trust_env=False,
            limits=httpx.Limits(max_connections=CONNECTIONS_MAX),
            headers=self._headers(),
        )

    @property
    def host(self) -> str:
        """The name that is called."""
        return self._url.host

    async def vectors(self, texts: list[str]) -> tuple[Vector, ...]:
        """Return the vector of each text.

        Raises:
            TimeoutError: no address let itself be connected to in its share of the time. The rest
                has no limit of its own.
            EndpointDownError: it cannot be reached, breaks off, or answers with 5xx. Retryable.
            AnswerUnusableError: any other answer that is no use.
            AddressRefusedError: it must not be called.
        """
        asked = self.options
        content = orjson.dumps(
            {"model": asked.model, "input": [text[: asked.code_points_max] for text in texts]}
        )
        body = await self._answer(content, answer_bytes_max(len(texts), asked.dimension))
        packed = read_answer(body, count=len(texts), dimension=asked.dimension)
        return tuple(Vector(asked.model, each) for each in packed)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.aclose()

    async def _answer(self, content: bytes, bytes_max: int) -> bytes:
        """Ask at one address after the other, until one can be connected to."""
        addresses = await self._addresses()
        failure: httpx.TransportError | None = None
        for address in addresses:
            try:
                return await self._posted(
                    address, content, bytes_max, self.options.timeout_s / len(addresses)
                )
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                failure = error
            except (httpx.TransportError, OSError) as error:
                raise EndpointDownError(type(error).__name__) from None
        if isinstance(failure, httpx.ConnectTimeout):
            raise TimeoutError
        raise EndpointDownError(type(failure).__name__)

    async def _addresses(self) -> list[str]:
        try:
            found = await self._resolve(self.host, self._url.port or 443)
        except (OSError, UnicodeError) as error:
            raise EndpointDownError(type(error).__name__) from None
        return screened(found, allow_loopback=self.options.allow_loopback)

    async def _posted(
        self, address: str, content: bytes, bytes_max: int, connect_s: float
    ) -> bytes:
        """Send to this very address; the certificate must be for the endpoint's name."""
        request = self._client.build_request(
            "POST",
            self._url.copy_with(host=address),
            content=content,
            headers={"host": self._url.netloc.decode()},
            extensions={"sni_hostname": self._url.raw_host.decode()},
            timeout=httpx.Timeout(None, connect=connect_s),
        )
        answer = await self._client.send(request, stream=True)
        try:
            if answer.status_code >= HTTPStatus.INTERNAL_SERVER_ERROR:
                raise EndpointDownError(f"status {answer.status_code}")
            if answer.status_code != HTTPStatus.OK:
                raise AnswerUnusableError(f"status {answer.status_code}")
            return await _body(answer, bytes_max)
        finally:
            await answer.aclose()

    def _headers(self) -> dict[str, str]:
        key = self.options.key
        return {
            "accept": "application/json",
            "accept-encoding": "identity",
            "content-type": "application/json",
            **({} if key is None else {"authorization": f"Bearer {key}"}),
        }


async def _body(answer: httpx.Response, bytes_max: int) -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > bytes_max:
            raise AnswerUnusableError(f"the answer is larger than {bytes_max} bytes")
    return bytes(body)
