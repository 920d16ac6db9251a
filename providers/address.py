"""Addresses of PostgreSQL: whether they are any, may carry a password, and name fit files."""

import ipaddress
import os
import ssl
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

_VERIFYING = frozenset({"verify-ca", "verify-full"})
_FILES = ("sslrootcert", "sslcert", "sslkey")
_HOME = Path("~/.postgresql/root.crt")


def fault(dsn: str) -> str | None:
    """Return why an address of PostgreSQL must not be used, if anything; it is not repeated.

    It is none, or unguarded, or names files that no connection can come of. The text goes on from
    what the address is called.
    """
    if not is_postgres(dsn):
        return "must be a postgresql:// address"
    if not is_guarded(dsn):
        return "beyond loopback needs sslmode=verify-full"
    found = trust_fault(dsn)
    return None if found is None else f"is not fit: {found}"


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


def trust_fault(dsn: str) -> str | None:
    """Return what is wrong with the files that a driver must read before it connects, if anything.

    They are those of ``sslrootcert``, ``sslcert`` and ``sslkey``, or of ``PGSSLROOTCERT`` etc., and
    for the authorities at last ``~/.postgresql/root.crt``. The text names parameter and file.
    Nothing is connected to; what a service file says is not looked at.
    """
    query = parse_qs(urlsplit(dsn).query)
    mode, root, chain, key = (_given(query, name) for name in ("sslmode", *_FILES))
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    if mode not in {"require", *_VERIFYING} or _given(query, "service"):
        return None
    if root == "system":
        return "sslrootcert=system is not known to the driver: name a file of authorities"
    try:
        if root or mode in _VERIFYING:
            context.load_verify_locations(cafile=root or _HOME.expanduser())
    except OSError as error:
        hint = "" if root else "; name the file of the authorities with sslrootcert="
        return f"sslrootcert: {root or _HOME.expanduser()} {_why(error)}{hint}"
    try:
        if chain:
            context.load_cert_chain(chain, key or None, _given(query, "sslpassword"))
    except OSError as error:
        return f"sslcert, sslkey: {' and '.join(filter(None, (chain, key)))} {_why(error)}"
    return None


def _given(query: Mapping[str, list[str]], name: str) -> str:
    return query[name][-1] if name in query else os.environ.get(f"PG{name.upper()}", "")


def _why(error: OSError) -> str:
    if isinstance(error, ssl.SSLError):
        return "cannot be used: not what it must be"
    return f"cannot be read: {error.strerror}"


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
