"""How services are added to gRPC's asyncio server so that a call costs the same for any number."""

from typing import cast

import grpc.aio


class _GenericOnly:
    """Stands in for a server while services are added, and passes on generic handlers only."""

    def __init__(self, server: grpc.aio.Server) -> None:
        self.add_generic_rpc_handlers = server.add_generic_rpc_handlers

    def add_registered_method_handlers(self, _service: str, _handlers: object) -> None:
        """Leave the method to the generic handler."""


def generic_only(server: grpc.aio.Server) -> grpc.aio.Server:
    """Return what generated functions add their services to.

    The server waits on one future for each registered method for every call that comes in. Generic
    handlers share one.
    """
    return cast("grpc.aio.Server", _GenericOnly(server))
