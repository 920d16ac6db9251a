"""The clients of a broker: a process of its own that makes calls and takes the time of each.

Run as a program, it reads an order a line from standard input, as JSON, and answers each with a
line: what it took, or what went wrong. Requests are made in advance and replies are not parsed, so
that it is as light as a client in Python can be.
"""

import asyncio
import json
import pickle
import sys
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import uvloop
from grpc import aio, ssl_channel_credentials

from tests.bench.cases import CONCURRENCY, Sample, timed

LINE_BYTES_MAX = 64 * 1024 * 1024
CALL_SECONDS = 60.0


@dataclass(frozen=True)
class Target:
    """Whom to call, and as whom.

    Attributes:
        address: Host and port.
        ca_file: The authority to trust.
        bearer: What stands in ``authorization``; empty: nothing does.
        channels: How many connections the calls are spread over.
    """

    address: str
    ca_file: str
    bearer: str
    channels: int


class Load:
    """A client process."""

    def __init__(self) -> None:
        """Begin without one."""
        self._process: Process | None = None

    async def start(self) -> None:
        """Start the process."""
        command = (sys.executable, "-m", __name__)
        self._process = await asyncio.create_subprocess_exec(
            *command, stdin=PIPE, stdout=PIPE, limit=LINE_BYTES_MAX
        )

    async def run(
        self, target: Target, path: str, requests: Sequence[bytes], concurrency: int
    ) -> Sample:
        """Make one call for each request; the sample knows of no CPU time.

        Raises:
            RuntimeError: A call was refused, or the process is gone.
        """
        answer, _ = await self._ask(target, path, requests, concurrency)
        return Sample(len(requests), answer["seconds"], tuple(answer["latencies"]))

    async def answers(self, target: Target, path: str, requests: Sequence[bytes]) -> list[bytes]:
        """Make one call for each request, in whatever order, and return the replies in theirs.

        Raises:
            RuntimeError: See ``run``.
        """
        _, replies = await self._ask(target, path, requests, CONCURRENCY)
        return replies

    async def stop(self) -> None:
        """End the process."""
        process, self._process = self._process, None
        if process is not None:
            assert process.stdin is not None
            process.stdin.close()
            await process.wait()

    async def _ask(
        self, target: Target, path: str, requests: Sequence[bytes], concurrency: int
    ) -> tuple[dict[str, Any], list[bytes]]:
        assert self._process is not None
        assert self._process.stdin is not None and self._process.stdout is not None
        with tempfile.NamedTemporaryFile(prefix="broker-bench-") as file:
            _put(file.name, list(requests))
            order = {"path": path, "file": file.name, "concurrency": concurrency}
            self._process.stdin.write(json.dumps(order | {"target": asdict(target)}).encode())
            self._process.stdin.write(b"\n")
            line = await self._process.stdout.readline()
            if not line:
                raise RuntimeError("the client process ended")
            answer: dict[str, Any] = json.loads(line)
            if "error" in answer:
                raise RuntimeError(f"{path} failed: {answer['error']}")
            return answer, _taken(file.name)


def _put(file: str, messages: list[bytes]) -> None:
    Path(file).write_bytes(pickle.dumps(messages))


def _taken(file: str) -> list[bytes]:
    messages: list[bytes] = pickle.loads(Path(file).read_bytes())
    return messages


# -------------------- the process itself


class _Channels:
    """The open channels to each target."""

    def __init__(self) -> None:
        self._open: dict[Target, list[aio.Channel]] = {}

    async def to(self, target: Target) -> list[aio.Channel]:
        if target not in self._open:
            made = [_channel(target, number) for number in range(target.channels)]
            await asyncio.gather(*(each.channel_ready() for each in made))
            self._open[target] = made
        return self._open[target]


def _channel(target: Target, number: int) -> aio.Channel:
    credentials = ssl_channel_credentials(Path(target.ca_file).read_bytes())
    # Channels with the same arguments would share one connection.
    options = [
        ("grpc.use_local_subchannel_pool", 1),
        ("grpc.enable_retries", 0),
        ("number", number),
    ]
    return aio.secure_channel(target.address, credentials, options=options)


async def _answer(channels: _Channels, order: dict[str, Any]) -> dict[str, Any]:
    target, requests = Target(**order["target"]), _taken(order["file"])
    metadata = [("authorization", target.bearer)] if target.bearer else []
    calls: list[aio.UnaryUnaryMultiCallable[bytes, bytes]] = [
        each.unary_unary(order["path"]) for each in await channels.to(target)
    ]
    replies = [b""] * len(requests)

    async def call(number: int) -> None:
        method = calls[number % len(calls)]
        replies[number] = await method(requests[number], metadata=metadata, timeout=CALL_SECONDS)

    try:
        sample = await timed(len(requests), order["concurrency"], call)
    except ExceptionGroup as group:  # one call that fails ends all
        return {"error": str(group.exceptions[0])}
    _put(order["file"], replies)
    return {"seconds": sample.seconds, "latencies": sample.latencies}


async def _serve() -> None:
    channels, loop = _Channels(), asyncio.get_running_loop()
    while line := await loop.run_in_executor(None, sys.stdin.readline):
        print(json.dumps(await _answer(channels, json.loads(line))), flush=True)


if __name__ == "__main__":
    uvloop.run(_serve())
