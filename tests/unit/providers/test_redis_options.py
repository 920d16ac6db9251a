"""What the adapter takes as options, on both sides of each boundary (004-37)."""

import dataclasses
import ssl
import traceback
from pathlib import Path

import pytest
import trustme

from providers.redis.options import KEY_PREFIX, RedisOptions, options_of
from providers.registry import adapter

USER, PASSWORD = "canary-user", "canary-password"
GIVEN: dict[str, object] = {
    "endpoint": "rediss://redis.test:6379",
    "resource_id": "r",
    "generation": 1,
    "options_revision": "v1",
}
KEPT = [
    ("endpoint", "rediss://localhost:1"),
    ("endpoint", "rediss://localhost:65535"),
    ("endpoint", "rediss://127.0.0.1:6379"),
    ("endpoint", "rediss://[::1]:6379"),
    ("endpoint", "rediss://[2001:DB8::ffff:192.0.2.1]:6379"),
    ("endpoint", "rediss://Cache_1.Redis-2.test:6379"),
    ("endpoint", f"rediss://{'h' * 253}:6379"),
    ("resource_id", "r" * 256),
    ("resource_id", "A-z_0.9:"),
    ("generation", 2**63 - 1),
    ("options_revision", "v" * 256),
    ("database", 0),
    ("database", 15),
    ("key_prefix", "p"),
    ("key_prefix", "A-z_0.9:" * 16),
    ("pool_size", 200),
    ("pool_ready", 16),
    ("connect_ms", 1),
    ("connect_ms", 600_000),
]
REFUSED = [
    ("endpoint", "redis://localhost:6379"),
    ("endpoint", "REDISS://localhost:6379"),
    ("endpoint", "https://localhost:6379"),
    ("endpoint", "unix:///run/redis.sock"),
    ("endpoint", "localhost:6379"),
    ("endpoint", "rediss://localhost"),
    ("endpoint", "rediss://localhost:"),
    ("endpoint", "rediss://localhost:0"),
    ("endpoint", "rediss://localhost:06379"),
    ("endpoint", "rediss://localhost:65536"),
    ("endpoint", "rediss://localhost:-1"),
    ("endpoint", "rediss://localhost:6379x"),
    ("endpoint", "rediss://localhost:\uff16\uff13\uff17\uff19"),
    ("endpoint", "rediss://:6379"),
    ("endpoint", "rediss://user@localhost:6379"),
    ("endpoint", "rediss://@localhost:6379"),
    ("endpoint", f"rediss://{USER}:{PASSWORD}@localhost:6379"),
    ("endpoint", "rediss://localhost:6379/"),
    ("endpoint", "rediss://localhost:6379/0"),
    ("endpoint", "rediss://localhost:6379?"),
    ("endpoint", "rediss://localhost:6379?ssl_cert_reqs=none"),
    ("endpoint", "rediss://localhost:6379#"),
    ("endpoint", "rediss://localhost:6379#f"),
    ("endpoint", " rediss://localhost:6379"),
    ("endpoint", "rediss://localhost:6379\n"),
    ("endpoint", "rediss://local host:6379"),
    ("endpoint", "rediss://local\thost:6379"),
    ("endpoint", "rediss://one,two:6379"),
    ("endpoint", "rediss://one:6379,two:6379"),
    ("endpoint", "rediss://::1:6379"),
    ("endpoint", "rediss://[localhost]:6379"),
    ("endpoint", "rediss://[127.0.0.1]:6379"),
    ("endpoint", "rediss://[::1:6379"),
    ("endpoint", "rediss://[1:2:3]:6379"),
    ("endpoint", "rediss://m\u00fcnchen.test:6379"),
    ("endpoint", f"rediss://{'h' * 254}:6379"),
    ("resource_id", ""),
    ("resource_id", "r" * 257),
    ("resource_id", "a b"),
    ("resource_id", "a\n"),
    ("generation", 0),
    ("generation", 2**63),
    ("options_revision", ""),
    ("options_revision", "v" * 257),
    ("options_revision", "v/1"),
    ("database", -1),
    ("database", 16),
    ("key_prefix", ""),
    ("key_prefix", "p" * 129),
    ("key_prefix", "a{b}"),
    ("key_prefix", "a b"),
    ("key_prefix", "a/b"),
    ("key_prefix", "pr\u00e9fixe"),
    ("key_prefix", "a\n"),
    ("ca_file", ""),
    ("ca_file", "a\0b"),
    ("pool_size", 0),
    ("pool_size", 201),
    ("pool_ready", 0),
    ("pool_ready", 17),
    ("connect_ms", 0),
    ("connect_ms", 600_001),
]
# What TOML can say where something else belongs; None is what an option that was left out is.
OF_ANOTHER_TYPE = [
    (field.name, value)
    for field in dataclasses.fields(RedisOptions)
    for value in (True, 1, 1.0, float("nan"), "1", ["1"], {"1": 1}, None)
    if not isinstance(value, str if "str" in str(field.type) else int) or isinstance(value, bool)
    if value is not None or "None" not in str(field.type)
]


def options(**given: object) -> RedisOptions:
    return RedisOptions(**(GIVEN | given))  # type: ignore[arg-type]


def refusal(**given: object) -> str:
    """Return all that the refusal of these options says, its chain included."""
    with pytest.raises(ValueError, match="the option") as refused:
        options(**given)
    return "".join(traceback.format_exception(refused.value)) + repr(refused.value)


def test_defaults() -> None:
    """004-37: the key prefix and the database that nobody named."""
    made = options()
    assert (made.key_prefix, made.database) == (KEY_PREFIX, 0) == ("agentweaver:knowledge", 0)
    assert (made.username, made.password, made.ca_file) == (None, None, None)


@pytest.mark.parametrize(("name", "value"), KEPT)
def test_options_within_bounds(name: str, value: object) -> None:
    """004-37: each boundary from within."""
    assert getattr(options(**{name: value}), name) == value


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_options_out_of_bounds(name: str, value: object) -> None:
    """004-37: each boundary from without; the refusal names the option."""
    assert f"the option {name} must be" in refusal(**{name: value})


@pytest.mark.parametrize(("name", "value"), OF_ANOTHER_TYPE)
def test_options_of_another_type(name: str, value: object) -> None:
    """004-37: a value of another type is refused like one out of bounds, and named as clearly."""
    credentials = {"username": USER, "password": PASSWORD}
    assert f"the option {name} must be" in refusal(**(credentials | {name: value}))


@pytest.mark.parametrize(
    ("endpoint", "host", "port"),
    [
        ("rediss://Redis.test:65535", "redis.test", 65535),
        ("rediss://[::1]:1", "::1", 1),
        ("rediss://127.0.0.1:6379", "127.0.0.1", 6379),
    ],
)
def test_host_and_port(endpoint: str, host: str, port: int) -> None:
    made = options(endpoint=endpoint)
    assert (made.host, made.port) == (host, port)


@pytest.mark.parametrize("given", [{"username": USER}, {"password": PASSWORD}])
def test_credentials_go_together(given: dict[str, object]) -> None:
    """004-37: one without the other is refused, and not repeated."""
    told = refusal(**given)
    assert "the option username and the option password go together" in told
    assert "canary" not in told


@pytest.mark.parametrize(
    "password", ["p", "p" * 4096, "p\u00e4ss w\u00f6rd \U0001f511", " ", ":@/"]
)
@pytest.mark.parametrize("username", ["u", "u" * 256, "us\u00e9r:@/"])
def test_credentials_that_are_kept(username: str, password: str) -> None:
    made = options(username=username, password=password)
    assert (made.username, made.password) == (username, password)


@pytest.mark.parametrize(
    "password",
    ["", "x" * 4097, *(f"canary{each}" for each in "\0\t\n\r\x1b\x1f\x7f\x80\x9f\ud800\udfff")],
)
def test_passwords_that_are_refused(password: str) -> None:
    """004-37: 1 to 4,096 characters, none for control; what was given is not repeated."""
    told = refusal(username=USER, password=password)
    assert "the option password must be" in told
    assert "canary" not in told
    assert "xx" not in told


@pytest.mark.parametrize("username", ["", "x" * 257, "canary 1", "canary\n", "canary\0"])
def test_usernames_that_are_refused(username: str) -> None:
    told = refusal(username=username, password=PASSWORD)
    assert "the option username must be" in told
    assert "canary" not in told


def test_no_credential_is_shown() -> None:
    """004-37: neither user nor password, however options are printed."""
    made = options(username=USER, password=PASSWORD)
    assert "canary" not in f"{made!r} {made!s} {made}"
    assert "redis.test" in repr(made)


def test_the_authorities_of_a_file(tmp_path: Path) -> None:
    """004-37: TLS that checks name and authority, and those of the file alone."""
    file = tmp_path / "ca.crt"
    trustme.CA().cert_pem.write_to_path(str(file))
    context = options(ca_file=str(file)).tls()
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert len(context.get_ca_certs()) == 1


def test_files_that_cannot_be_used(tmp_path: Path) -> None:
    """004-37: one that is not there, is no file, and holds no certificate; each is named."""
    for name, content in (("empty", ""), ("prose", "no certificate"), ("bytes", "\0\1")):
        (tmp_path / name).write_text(content)
        assert f"{tmp_path / name} holds no certificate in PEM" in refusal(
            ca_file=str(tmp_path / name)
        )
    assert f"{tmp_path}/none cannot be read: No such file" in refusal(ca_file=f"{tmp_path}/none")
    assert f"{tmp_path} cannot be read: Is a directory" in refusal(ca_file=str(tmp_path))


def test_the_registry_names_the_option() -> None:
    """004-37: what an operator wrote in the configuration is named when it is wrong."""
    opened = adapter("redis.memory").open
    with pytest.raises(ValueError, match="the option database"):
        opened(GIVEN | {"database": "0"})
    with pytest.raises(ValueError, match="no option databse"):
        opened(GIVEN | {"databse": 0})
    with pytest.raises(ValueError, match="generation is missing"):
        opened({name: value for name, value in GIVEN.items() if name != "generation"})


# -------------------- an operator's address


def test_an_address_with_everything(tmp_path: Path) -> None:
    """004-37: what stands in an address arrives in the options, decoded."""
    file = tmp_path / "a b+c.crt"
    trustme.CA().cert_pem.write_to_path(str(file))
    told = str(file).replace(" ", "%20").replace("+", "%2B")
    address = f"rediss://us%2Fer:p%40:@ss%25@[::1]:6380/15?ca_file={told}&key_prefix=a:b"
    made = options_of(address, "resource", 3)
    assert (made.endpoint, made.database) == ("rediss://[::1]:6380", 15)
    assert (made.username, made.password) == ("us/er", "p@:@ss%")
    assert (made.ca_file, made.key_prefix) == (str(file), "a:b")
    assert (made.resource_id, made.generation) == ("resource", 3)


@pytest.mark.parametrize("end", ["", "/", "/0", "/00", "?key_prefix=agentweaver:knowledge"])
def test_an_address_with_little(end: str) -> None:
    made = options_of(f"rediss://localhost:6379{end}", "r", 1)
    assert (made.endpoint, made.database) == ("rediss://localhost:6379", 0)
    assert (made.username, made.password, made.key_prefix) == (None, None, KEY_PREFIX)


@pytest.mark.parametrize(
    "address",
    [
        "",
        "qxqx",
        "rediss:qxqx",
        "redis://qxqx:6379/0",
        "rediss://qxqx",
        "rediss://qxqx:0",
        "rediss://qxqx:65536",
        "rediss://qxqx@localhost:6379",
        "rediss://:qxqx@localhost:6379",
        "rediss://qxqx:@localhost:6379",
        "rediss://:@localhost:6379/qxqx",
        "rediss://qxqx:qxqx@localhost",
        "rediss://qxqx:qx%ffqx@localhost:6379",
        "rediss://qxqx:qx%0aqx@localhost:6379",
        "rediss://u:qx/qx@localhost:6379/0",
        "rediss://u:qx?qx@localhost:6379/0",
        "rediss://u:qx?key_prefix=qx@localhost:6379/0",
        "rediss://u:qx#qx@localhost:6379/0",
        "rediss://u:p@qxqx[:6379",
        "rediss://u:p@qx\u2100qx:6379",
        "rediss://localhost:6379/qxqx",
        "rediss://localhost:6379/16?key_prefix=qxqx",
        "rediss://localhost:6379/+1?key_prefix=qxqx",
        "rediss://localhost:6379/1_0?key_prefix=qxqx",
        "rediss://localhost:6379/\u0663?key_prefix=qxqx",
        "rediss://localhost:6379/0/qxqx",
        "rediss://localhost:6379/0#qxqx",
        "rediss://localhost:6379/0?ca_file=qxqx#qxqx",
        "rediss://localhost:6379/0?qxqx=1",
        "rediss://localhost:6379/0?qxqx",
        "rediss://localhost:6379/0?ssl_cert_reqs=qxqx",
        "rediss://localhost:6379/0?key_prefix=qxqx&key_prefix=qxqx",
        "rediss://localhost:6379/0?key_prefix=qxqx{}",
        "rediss://localhost:6379/0?ca_file=",
        "rediss://localhost:6379/0?ca_file=%ffqxqx",
        "rediss://localhost:6379/0\nqxqx",
    ],
)
def test_addresses_that_are_refused(address: str) -> None:
    """004-37: an address that is none is refused, and no part of it repeated anywhere."""
    with pytest.raises(ValueError, match=r"the address is not rediss|the option") as refused:
        options_of(address, "r", 1)
    assert "qx" not in "".join(traceback.format_exception(refused.value))
