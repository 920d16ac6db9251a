"""The standard health service, whose watchers let go when the server drains."""

import asyncio
from collections.abc import Iterable
from typing import Any, Final

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

OVERALL: Final = ""


class HealthServicer(health_pb2_grpc.HealthServicer):
    """Answers for the whole server and for each service by name, all alike.

    The library's own servicer keeps its watchers for ever, which would hold up every drain until
    its grace is over. Here a watcher ends once it has told that the server drains.
    """

    def __init__(self, services: Iterable[str]) -> None:
        """Know the services by their full names; nothing serves yet."""
        self._services = frozenset({OVERALL, *services})
        self._serving = False
        self._draining = False
        self._changed = asyncio.Event()

    def set_serving(self, *, serving: bool) -> None:
        """Say whether calls are served. Has no effect once the server drains."""
        self._serving = serving and not self._draining
        self._changed.set()
        self._changed = asyncio.Event()

    def drain(self) -> None:
        """Say NOT_SERVING for good, and let the watchers go."""
        self._draining = True
        self.set_serving(serving=False)

    async def Check(self, request: Any, context: Any) -> health_pb2.HealthCheckResponse:
        """Return the status of a service; NOT_FOUND where there is no such service."""
        if request.service not in self._services:
            context.set_code(grpc.StatusCode.NOT_FOUND)
        return health_pb2.HealthCheckResponse(status=self._status(request.service))

    async def Watch(self, request: Any, context: Any) -> None:
        """Stream the status of a service, now and at every change, until the server drains."""
        told: int | None = None
        while True:
            # Together, before anything is awaited: the end of a drain is told before it ends.
            changed, draining = self._changed, self._draining
            status = self._status(request.service)
            if status != told:
                await context.write(health_pb2.HealthCheckResponse(status=status))
                told = status
            if draining:
                return
            await changed.wait()

    def _status(self, service: str) -> int:
        if service not in self._services:
            return health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
        if self._serving:
            return health_pb2.HealthCheckResponse.SERVING
        return health_pb2.HealthCheckResponse.NOT_SERVING
