"""Addresses of PostgreSQL: whether they are any, and whether a password may travel there."""

import ipaddress
import os
from urllib.parse import parse_qs, urlsplit


def is_postgres(dsn: str) -> bool:
    """Tell whether an address is one of PostgreSQL."""
    return urlsplit(dsn).scheme in {"postgresql", "postgres"}


def is_guarded(dsn: str) -> bool:
    """Tell whether nobody on the way to a PostgreSQL server can read along or pose as it.

    True for sockets and loopback, and elsewhere with ``sslmode=verify-full``. Every host that the
    address names counts, whichever of them a driver would take; where it names none, those of
    ``PGHOST`` do. What a service file says is not known here, so a service is never guarded.
    """
    parts = urlsplit(dsn)
    query = parse_qs(parts.query)
    if query.get("sslmode") == ["verify-full"]:
        return True
    if "service" in query:
        return False
    authority = parts.netloc.rpartition("@")[2]
    hosts = [_without_port(each) for each in authority.split(",")]
    hosts += [each for given in query.get("host", []) for each in given.split(",")]
    if not any(hosts):
        hosts = [_without_port(each) for each in os.environ.get("PGHOST", "").split(",")]
    return all(host == "" or host.startswith("/") or _is_loopback(host) for host in hosts)


def _without_port(address: str) -> str:
    host, colon, port = address.rpartition(":")
    return (host if colon and port.isdigit() else address).strip("[]")


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
