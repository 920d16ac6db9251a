"""Which addresses an endpoint may have: on both sides of every border."""

import pytest

from broker.embeddings.addresses import AddressRefusedError, refusal, resolved, screened

NEVER = [
    "169.254.0.0",
    "169.254.169.254",
    "169.254.255.255",
    "fe80::1",
    "fe80::1%eth0",
    "febf::1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "fd00:ec2::254",
    "fd20:ce::254",
    "0.0.0.0",
    "::",
    "224.0.0.1",
    "ff02::1",
    "255.255.255.255",
    # The same inside other addresses.
    "::ffff:169.254.169.254",
    "::ffff:100.100.100.200",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::a9fe:a9fe",
    "2002:a9fe:a9fe::1",
    "2001:0:4136:e378:8000:63bf:5601:5601",
]
THIS_MACHINE = ["127.0.0.1", "127.255.255.254", "::1", "::ffff:127.0.0.1", "64:ff9b::7f00:1"]
FINE = [
    "169.253.255.255",
    "169.255.0.0",
    "126.255.255.255",
    "128.0.0.1",
    "10.0.0.1",
    "192.168.1.1",
    "100.100.100.199",
    "100.100.100.201",
    "fec0::1",
    "fd00:ec3::1",
    "2606:4700::1111",
    "64:ff9b::808:808",
]


@pytest.mark.parametrize("address", NEVER)
@pytest.mark.parametrize("allow_loopback", [False, True])
def test_metadata_and_link_local_addresses_are_refused(address: str, allow_loopback: bool) -> None:
    """000-41: an endpoint must not be a way to a machine's own secrets."""
    assert refusal(address, allow_loopback=allow_loopback)
    with pytest.raises(AddressRefusedError):
        screened(["10.0.0.1", address], allow_loopback=allow_loopback)


@pytest.mark.parametrize("address", THIS_MACHINE)
def test_this_machine_is_refused_unless_allowed(address: str) -> None:
    assert "allow_loopback" in str(refusal(address, allow_loopback=False))
    assert refusal(address, allow_loopback=True) is None


@pytest.mark.parametrize("address", FINE)
def test_the_rest_is_called(address: str) -> None:
    assert refusal(address, allow_loopback=False) is None


def test_four_addresses_are_tried_and_all_are_looked_at() -> None:
    many = [f"10.0.0.{n}" for n in range(6)]
    assert screened(many, allow_loopback=False) == many[:4]
    with pytest.raises(AddressRefusedError):
        screened([*many, "169.254.169.254"], allow_loopback=False)


async def test_the_system_is_asked() -> None:
    assert await resolved("127.0.0.1", 443) == ["127.0.0.1"]
    assert "127.0.0.1" in await resolved("localhost", 443)
