"""The floor of any gRPC server in Python: one that gives back what it gets, in its own process.

Run as a program it serves over TLS with these files until standard input ends, and prints its port.
"""

import asyncio
import gc
import sys
from dataclasses import dataclass, field
from pathlib import Path

import grpc
import uvloop
from grpc import aio

from tests.bench.cases import Ground, Sample, cpu_seconds
from tests.bench.load import Load, Target
from tests.bench.neighbours import Authority, server_credentials
from tests.bench.program import Program

PATH = "/bench.Echo/Echo"
MESSAGE = b"x" * 1_024
CHANNELS = 4


@dataclass
class EchoCase:
    """1 KiB there and back over TLS, to one process."""

    name: str
    ground: Ground
    _load: Load = field(default_factory=Load)
    _server: Program | None = None
    _target: Target = field(default_factory=lambda: Target("", "", "", CHANNELS))

    async def start(self) -> None:
        """See ``Case``."""
        directory = self.ground.directory / "echo"
        directory.mkdir()
        tls = Authority(directory)
        self._server = Program(__name__, str(tls.chain), str(tls.key))
        port = int(self._server.line())
        self._target = Target(f"127.0.0.1:{port}", str(tls.ca_file), "", CHANNELS)
        await self._load.start()

    async def run(self, concurrency: int, calls: int) -> Sample:
        """See ``Case``."""
        assert self._server is not None
        burnt = cpu_seconds([self._server.pid])
        sample = await self._load.run(self._target, PATH, [MESSAGE] * calls, concurrency)
        cpu_s = cpu_seconds([self._server.pid]) - burnt
        return Sample(sample.calls, sample.seconds, sample.latencies, cpu_s)

    async def stop(self) -> None:
        """See ``Case``."""
        await self._load.stop()
        if self._server is not None:
            self._server.stop()


async def _echo(message: bytes, _: "aio.ServicerContext[bytes, bytes]") -> bytes:
    return message


async def _serve(chain: str, key: str) -> None:
    server = aio.server(options=[("grpc.so_reuseport", 0)])
    handler: grpc.RpcMethodHandler[bytes, bytes] = grpc.unary_unary_rpc_method_handler(_echo)
    echo = grpc.method_handlers_generic_handler("bench.Echo", {"Echo": handler})
    server.add_generic_rpc_handlers((echo,))
    credentials = server_credentials(Path(chain), Path(key))
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    gc.freeze()
    print(port, flush=True)
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    await server.stop(1.0)


if __name__ == "__main__":
    uvloop.run(_serve(*sys.argv[1:]))
