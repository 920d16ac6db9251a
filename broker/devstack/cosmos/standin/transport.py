"""The stand-in as an HTTP server: requests in, replies and scripted faults out."""

from __future__ import annotations

import asyncio
from uuid import uuid4

from aiohttp import web

from broker.devstack.cosmos.faults import Fault
from broker.devstack.cosmos.standin import batch, documents, protocol
from broker.devstack.cosmos.standin.addresses import Address
from broker.devstack.cosmos.standin.calls import Call, Reply
from broker.devstack.cosmos.standin.items import BYTES_MAX
from broker.devstack.cosmos.standin.ledger import Ledger
from broker.devstack.cosmos.standin.refusals import CODES, RefusalError, invalid, too_large
from broker.devstack.cosmos.standin.script import Script
from broker.devstack.cosmos.standin.service import Service
from broker.devstack.cosmos.standin.traffic import Traffic

_NO_FAULT = Fault()


class Transport:
    """Answers HTTP requests."""

    def __init__(self, service: Service, script: Script, ledger: Ledger, traffic: Traffic) -> None:
        """Serves a service, with the faults of a script, and notes requests in a ledger."""
        self._service = service
        self._script = script
        self._ledger = ledger
        self._traffic = traffic

    def application(self) -> web.Application:
        """Returns the application to run."""
        application = web.Application(client_max_size=2 * BYTES_MAX)
        application.router.add_route("*", "/{path:.*}", self._handle)
        return application

    async def _handle(self, request: web.Request) -> web.StreamResponse:
        with self._traffic.entered():
            return await self._respond(request)

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        try:
            call = await _call(request)
        except RefusalError as refusal:
            return _response(request, _refused(refusal))
        kind = protocol.kind_of(call)
        head = self._ledger.enter(call, kind, request.raw_path)
        try:
            self._service.authenticate(call, kind)
            fault = self._script.next(kind) or _NO_FAULT
            reply = await self._answer(call, kind, fault)
        except RefusalError as refusal:
            reply = _refused(refusal)
            fault = _NO_FAULT
        if fault.drop:
            if request.transport is not None:
                request.transport.close()
            return web.Response()
        head["status"] = reply.status
        return _response(request, reply)

    async def _answer(self, call: Call, kind: str, fault: Fault) -> Reply:
        """Answers as a fault wants it; with no fault, as the service does."""
        await self._traffic.passed(kind)
        await asyncio.sleep(fault.delay_ms / 1000)
        reply = Reply(500)
        if not fault.prevents:
            reply = self._service.answer(call, kind, fault.items)
        await asyncio.sleep(fault.late_ms / 1000)
        if fault.inner:
            return Reply(207, batch.failed(batch.count(call), fault.index, fault.inner))
        if fault.status:
            return _refused(
                RefusalError(fault.status, "a scripted fault", fault.substatus),
                fault.retry_after_ms,
            )
        if fault.results >= 0 and isinstance(reply.body, list):
            return Reply(reply.status, reply.body[: fault.results], reply.headers)
        return reply


async def _call(request: web.Request) -> Call:
    headers = {name.lower(): value for name, value in request.headers.items()}
    if len(headers) != len(request.headers):
        raise invalid("a header is there twice")
    if request.query_string:
        raise invalid("this stand-in knows no query strings")
    try:
        body = await request.read()
    except web.HTTPRequestEntityTooLarge:
        size = request.content_length or 2 * BYTES_MAX
        raise too_large("the request", size, BYTES_MAX) from None
    return Call(request.method, Address.parse(request.rel_url.raw_path), headers, body)


def _refused(refusal: RefusalError, retry_after_ms: int = 0) -> Reply:
    code = CODES.get(refusal.status, str(refusal.status))
    headers = {"x-ms-substatus": str(refusal.substatus)}
    if retry_after_ms:
        headers["x-ms-retry-after-ms"] = str(retry_after_ms)
    return Reply(refusal.status, {"code": code, "message": refusal.message}, headers)


def _response(request: web.Request, reply: Reply) -> web.Response:
    headers = {
        "server": "cosmos-stand-in",
        "x-ms-activity-id": request.headers.get("x-ms-activity-id", str(uuid4())),
        "x-ms-gatewayversion": "version=stand-in",
        "x-ms-request-charge": "1",
        **reply.headers,
    }
    body = None if reply.body is None else documents.written(reply.body)
    if body is not None:
        headers["content-type"] = "application/json"
    return web.Response(status=reply.status, body=body, headers=headers)
