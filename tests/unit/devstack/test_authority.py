"""The certificates of the development stack are such that strict clients take them."""

import ssl
from pathlib import Path

import pytest

from broker.devstack.authority import LocalAuthority


def greet(client: ssl.SSLObject, server: ssl.SSLObject, *pairs: tuple[ssl.MemoryBIO, ...]) -> None:
    """Shake hands in memory."""
    for _ in range(4):
        for side in (client, server):
            try:
                side.do_handshake()
            except ssl.SSLWantReadError:
                continue
            finally:
                for source, sink in pairs:
                    sink.write(source.read())


@pytest.mark.parametrize("host", ["localhost", "127.0.0.1"])
def test_certificates_keep_rfc_5280(tmp_path: Path, host: str) -> None:
    """Both sides check strictly, as Python 3.13 and newer do unasked."""
    made = LocalAuthority(tmp_path)
    trusting = ssl.create_default_context(cafile=made.ca_file)
    trusting.load_cert_chain(*made.client)
    serving = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=made.ca_file)
    serving.load_cert_chain(*made.server)
    serving.verify_mode = ssl.CERT_REQUIRED
    for each in (trusting, serving):
        each.verify_flags |= ssl.VERIFY_X509_STRICT
    there, back = (ssl.MemoryBIO(), ssl.MemoryBIO()), (ssl.MemoryBIO(), ssl.MemoryBIO())
    client = trusting.wrap_bio(back[1], there[0], server_hostname=host)
    server = serving.wrap_bio(there[1], back[0], server_side=True)
    greet(client, server, there, back)
    assert client.getpeercert()
    assert server.getpeercert()
