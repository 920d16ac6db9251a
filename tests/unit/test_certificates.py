"""Files of keys and certificates that must not be served with."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import trustme
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from broker.certificates import CertificateError, check_authorities, check_chain, check_key

CA = trustme.CA()
LEAF = CA.issue_cert("broker.test")
EXPIRED = CA.issue_cert("broker.test", not_after=datetime.now(UTC) - timedelta(days=1))


def written(directory: Path, content: bytes) -> Path:
    """Write a file."""
    file = directory / f"{len(list(directory.iterdir()))}.pem"
    file.write_bytes(content)
    return file


def chain_of(leaf: trustme.LeafCert) -> bytes:
    """Return the certificates of a leaf."""
    return b"".join(blob.bytes() for blob in leaf.cert_chain_pems)


def locked() -> bytes:
    """Return a private key under a password."""
    key = load_pem_private_key(LEAF.private_key_pem.bytes(), None)
    lock = BestAvailableEncryption(b"secret")
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, lock)


def test_a_pair_that_fits_is_taken(tmp_path: Path) -> None:
    key = check_key(written(tmp_path, LEAF.private_key_pem.bytes()))
    check_chain(written(tmp_path, chain_of(LEAF)), key)
    check_authorities(written(tmp_path, CA.cert_pem.bytes() + trustme.CA().cert_pem.bytes()))


@pytest.mark.parametrize(
    "content", [b"", b"no key", chain_of(LEAF), locked()], ids=["empty", "text", "chain", "locked"]
)
def test_what_is_no_plain_key_is_refused(content: bytes, tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match="holds no private key without a password"):
        check_key(written(tmp_path, content))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "holds no certificate"),
        (b"no certificate", "holds no certificate"),
        (LEAF.private_key_pem.bytes(), "holds no certificate"),
        (chain_of(CA.issue_cert("broker.test")), "of another key"),
        (CA.cert_pem.bytes() + chain_of(LEAF), "of another key"),
    ],
    ids=["empty", "text", "key", "another", "wrong_order"],
)
def test_what_is_no_chain_of_the_key_is_refused(content: bytes, said: str, tmp_path: Path) -> None:
    key = check_key(written(tmp_path, LEAF.private_key_pem.bytes()))
    with pytest.raises(CertificateError, match=said):
        check_chain(written(tmp_path, content), key)


def test_a_certificate_that_is_not_valid_yet_is_refused(tmp_path: Path) -> None:
    early = CA.issue_cert("broker.test", not_before=datetime.now(UTC) + timedelta(days=1))
    key = check_key(written(tmp_path, early.private_key_pem.bytes()))
    with pytest.raises(CertificateError, match="valid from 2"):
        check_chain(written(tmp_path, chain_of(early)), key)


def test_an_expired_certificate_is_refused(tmp_path: Path) -> None:
    key = check_key(written(tmp_path, EXPIRED.private_key_pem.bytes()))
    with pytest.raises(CertificateError, match="expired on 2"):
        check_chain(written(tmp_path, chain_of(EXPIRED)), key)


@pytest.mark.parametrize(
    ("content", "said"),
    [(b"nothing", "holds no certificate"), (chain_of(LEAF), "not an authority's")],
)
def test_what_signs_nothing_is_no_authority(content: bytes, said: str, tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=said):
        check_authorities(written(tmp_path, content))


@pytest.mark.parametrize("check", [check_key, check_authorities])
def test_an_absent_file_is_named(check: Callable[[Path], object], tmp_path: Path) -> None:
    with pytest.raises(CertificateError, match=r"absent\.pem cannot be read: No such file"):
        check(tmp_path / "absent.pem")
