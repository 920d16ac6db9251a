"""Gets one small document over https, bounded in size and time."""

import asyncio

import httpx


class FetchError(Exception):
    """The document could not be had. Says why without anything of the answer."""


async def fetch_document(
    client: httpx.AsyncClient, url: str, *, bytes_max: int, seconds: float
) -> bytes:
    """Return the body of a plain 200 answer.

    Args:
        client: follows no redirects and trusts no environment.
        url: absolute, https.
        bytes_max: the largest body, counted as it comes in; it is never decompressed.
        seconds: for everything from the connection to the last byte.

    Raises:
        FetchError: unreachable, too slow, too large, or another status. Retryable.
    """
    try:
        async with asyncio.timeout(seconds), client.stream("GET", url) as answer:
            if answer.status_code != httpx.codes.OK:
                raise FetchError(f"the answer has status {answer.status_code}")
            return await _body(answer, bytes_max)
    except (httpx.HTTPError, OSError) as error:
        raise FetchError(type(error).__name__) from None


async def _body(answer: httpx.Response, bytes_max: int) -> bytes:
    body = bytearray()
    async for chunk in answer.aiter_raw():
        body += chunk
        if len(body) > bytes_max:
            raise FetchError(f"the answer is larger than {bytes_max} bytes")
    return bytes(body)
