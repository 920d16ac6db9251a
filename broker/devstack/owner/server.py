"""Serves the owner on the loopback interface."""

from __future__ import annotations

from types import TracebackType
from typing import Self

import grpc

from broker.devstack.owner.servicer import RUN_IDS_MAX, ProjectsConfigServicer
from broker.owners.v1 import projects_config_service_pb2_grpc as pb_grpc
from broker.server.generic import generic_only

HOST = "127.0.0.1"
ANSWER_BYTES_MAX = 256 * 1024 + RUN_IDS_MAX * 4 * 1024
"""The contract's limit of an answer about as many runs as may be asked for."""
METADATA_BYTES_MAX = 64 * 1024

_OPTIONS = (
    ("grpc.so_reuseport", 0),
    ("grpc.max_send_message_length", ANSWER_BYTES_MAX),
    ("grpc.max_metadata_size", METADATA_BYTES_MAX),
    ("grpc.absolute_max_metadata_size", METADATA_BYTES_MAX),
)


class OwnerServer:
    """A gRPC server with the owner's service. An asynchronous context manager.

    Attributes:
        servicer: What answers; it counts its calls.
    """

    def __init__(
        self,
        servicer: ProjectsConfigServicer,
        port: int = 0,
        credentials: grpc.ServerCredentials | None = None,
    ) -> None:
        """Describes a server; nothing happens before ``start()``.

        Args:
            servicer: What answers.
            port: TCP port on the loopback interface; 0 takes a free one.
            credentials: For TLS; without them it serves in plaintext.
        """
        self.servicer = servicer
        self._port = port
        self._credentials = credentials
        self._server: grpc.aio.Server | None = None

    @property
    def address(self) -> str:
        """Host and port of the started server."""
        return f"{HOST}:{self._port}"

    async def start(self) -> Self:
        """Serves from now on.

        Raises:
            RuntimeError: The port is taken.
        """
        server = grpc.aio.server(options=_OPTIONS)
        pb_grpc.add_ProjectsConfigServiceServicer_to_server(self.servicer, generic_only(server))
        if self._credentials is None:
            self._port = server.add_insecure_port(self.address)
        else:
            self._port = server.add_secure_port(self.address, self._credentials)
        await server.start()
        self._server = server
        return self

    async def stop(self, grace: float = 1.0) -> None:
        """Ends the server; running calls have ``grace`` seconds to finish."""
        server, self._server = self._server, None
        if server is not None:
            await server.stop(grace)

    async def __aenter__(self) -> Self:
        """Starts the server."""
        return await self.start()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Ends the server."""
        await self.stop()
