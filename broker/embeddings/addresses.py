"""Which addresses an endpoint of embeddings may have."""

import asyncio
import socket
from collections.abc import Awaitable, Callable
from ipaddress import IPv4Address, IPv6Address, ip_address, ip_network
from typing import Final

ADDRESSES_MAX: Final = 4
"""Of an endpoint with more, the first ones are tried."""

Resolve = Callable[[str, int], Awaitable[list[str]]]
"""Gives the addresses of a host and port; raises OSError where there are none."""

_METADATA: Final = tuple(
    map(
        ip_network,
        (
            "100.100.100.200/32",  # Alibaba Cloud
            "168.63.129.16/32",  # Azure
            "192.0.0.192/32",  # Oracle Cloud
            "fd00:ec2::/32",  # Amazon
            "fd20:ce::254/128",  # Google
        ),
    )
)
"""Where clouds tell a machine its secrets, beside the link-local addresses that they all use."""
_NAT64: Final = tuple(map(ip_network, ("64:ff9b::/96", "64:ff9b:1::/48")))
_LOW_32_BITS: Final = (1 << 32) - 1


class AddressRefusedError(Exception):
    """The endpoint has an address that is never called. Not retryable."""


async def resolved(host: str, port: int) -> list[str]:
    """Ask the system for the addresses of a host, in its order.

    Raises:
        OSError: there are none.
    """
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return list(dict.fromkeys(str(address[0]) for *_, address in found))


def screened(addresses: list[str], *, allow_loopback: bool) -> list[str]:
    """Return the addresses that may be called, at most four.

    One that may not refuses them all: who answers for a name with such an address is not trusted
    with texts.

    Raises:
        AddressRefusedError: one is link-local, a cloud's metadata service, no single machine, or,
            unless that is allowed, this machine.
    """
    for address in addresses:
        if why := refusal(address, allow_loopback=allow_loopback):
            raise AddressRefusedError(f"the endpoint's address is {why}")
    return addresses[:ADDRESSES_MAX]


def refusal(address: str, *, allow_loopback: bool) -> str | None:
    """Return in words why an address is never called, or ``None``.

    An address inside another one counts: mapped, 6to4, Teredo and NAT64.

    Raises:
        ValueError: it is no address.
    """
    outer = ip_address(address)
    for each in (outer, *_inside(outer)):
        if each.is_link_local or any(each in network for network in _METADATA):
            return "link-local or a metadata service"
        if each.is_multicast or each.is_unspecified or each == IPv4Address("255.255.255.255"):
            return "not one machine's"
        if each.is_loopback and not allow_loopback:
            return "this machine's, and embeddings.allow_loopback is not set"
    return None


def _inside(address: IPv4Address | IPv6Address) -> list[IPv4Address]:
    if isinstance(address, IPv4Address):
        return []
    found = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
    if any(address in network for network in _NAT64):
        found.append(IPv4Address(int(address) & _LOW_32_BITS))
    return [each for each in found if each is not None]
