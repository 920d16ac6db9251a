"""``broker export`` and ``broker import`` as an operator runs them: as processes, over gRPC."""

import asyncio
import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest
import trustme

from broker.api.v1 import transfer_pb2
from broker.server.bundle_json import canonical_json, read_json
from tests.fixtures.broker import COMMAND, WITH_PARENT, Stand
from tests.fixtures.bundles import bundle, history
from tests.fixtures.desk import Desk, desk
from tests.fixtures.own_broker import Ended, WarmBroker, own_broker
from tests.fixtures.postgres import Database
from tests.fixtures.record_calls import EXPORT

__all__ = ["desk"]


class Shell:
    """Runs commands against one broker, with a token in a file."""

    def __init__(self, stand: Stand, warm: WarmBroker, project: str, directory: Path) -> None:
        """Write the token of a caller who may do everything."""
        self.warm = warm
        self.stand, self.project, self.directory = stand, project, directory
        self.file = directory / "bundle.json"
        self.reach = ["--target", stand.broker.address, "--plaintext"]
        self.token("tenant-a")

    def token(self, tenant: str, **claims: Any) -> None:
        """Be somebody of this tenant."""
        self.tenant = tenant
        made = self.stand.identity.token(tenant=tenant, **claims)
        (self.directory / "token").write_text(made + "\n", encoding="utf-8")

    def command(self, name: str, *more: str) -> list[str]:
        """Return a whole command."""
        scope = ["--project", self.project, "--run", "run-a", "--agent", "agent-a"]
        token = ["--token-file", str(self.directory / "token"), "--tenant", self.tenant]
        return [name, *self.reach, *token, *scope, *more]

    async def run(self, name: str, *more: str) -> Ended:
        """Run a command to its end."""
        return await asyncio.to_thread(self.warm.run, *self.command(name, *more))

    async def export(self, *more: str) -> Ended:
        """Export to the file."""
        return await self.run("export", "--output", str(self.file), *more)

    async def import_(self, key: str = "key-1", *more: str) -> Ended:
        """Import the file."""
        given = ("--input", str(self.file), "--idempotency-key", key)
        return await self.run("import", *given, *more)

    def read(self) -> transfer_pb2.Bundle:
        """Read the file."""
        return read_json(self.file.read_bytes())


@pytest.fixture
def shell(desk: Desk, warm_broker: WarmBroker, tmp_path: Path) -> Shell:
    """Commands for the project of a desk."""
    return Shell(desk.stand, warm_broker, desk.project, tmp_path)


async def test_out_and_in(desk: Desk, shell: Shell) -> None:
    """004-82, 004-88: to a file of one's own, in canonical form; into another tenant."""
    made = [await desk.made(f"key-{n}", content=f"{n} é\n") for n in range(2)]
    done = await shell.export()
    assert (done.code, done.said) == (0, f"exported 2 records to {shell.file}\n")
    assert stat.S_IMODE(shell.file.stat().st_mode) == 0o600
    assert [each.name for each in shell.directory.iterdir() if each.name[0] == "."] == []
    content = shell.file.read_bytes()
    assert content == canonical_json((await desk.done(EXPORT)).bundle)
    assert "é" in content.decode() and b"\n" not in content

    shell.token("tenant-b")
    checked = await shell.import_("key-1", "--validate-only")
    assert (checked.code, checked.said.splitlines()[0]) == (0, "would import: 2 records")
    done = await shell.import_()
    lines = [f"{each.record_id} revision 2" for each in made]
    assert (done.code, done.said.splitlines()) == (0, ["imported: 2 records", *sorted(lines)])
    again = await shell.import_()
    assert again.said.splitlines() == ["imported before: 2 records", *sorted(lines)]


async def test_some_records_to_standard_output(desk: Desk, shell: Shell) -> None:
    """004-87: the records named, and nothing but the bundle on standard output."""
    made = [await desk.made(f"key-{n}") for n in range(3)]
    named = [word for each in made[:2] for word in ("--record-id", each.record_id)]
    command = [*WITH_PARENT, *COMMAND, *shell.command("export", *named)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, check=True)
    found = {each.record.record_id for each in read_json(done.stdout).records}
    assert found == {each.record_id for each in made[:2]}
    given = ("--input", "-", "--idempotency-key", "key-1")
    shell.token("tenant-b")
    command = [*WITH_PARENT, *COMMAND, *shell.command("import", *given)]
    into = await asyncio.to_thread(
        subprocess.run, command, input=done.stdout, capture_output=True, check=True
    )
    assert into.stdout.startswith(b"imported: 2 records\n")


async def test_refusals_can_be_read(shell: Shell) -> None:
    """004-86, 004-87: the reason and each fault by its path; a file stays as it was."""
    made = bundle(shell.project, history(shell.project, "m", type=""), history(shell.project, "n"))
    shell.file.write_bytes(canonical_json(made))
    told = await shell.import_()
    first, *fields = told.said.splitlines()
    assert told.code == 1
    assert first.startswith("broker: BUNDLE_INVALID: bundle.records[0].revisions[0].type: must be")
    assert "request_id=" in first
    assert fields == ["  bundle.records[0].revisions[0].type: must be 1-64 code points"]
    kept = shell.file.read_bytes()
    told = await shell.export("--record-id", "absent")
    assert (told.code, told.said.split(":")[1].strip()) == (1, "RECORD_NOT_FOUND")
    assert shell.file.read_bytes() == kept


@pytest.mark.parametrize(
    ("content", "says"),
    [
        (b"", "holds no bundle"),
        (b"[]", "holds no bundle"),
        (b"\xff", "holds no bundle"),
        (b'{"format": "x", "another": 1}', "another"),
        (b"{}" + b" " * 17 * 1024 * 1024, "more than 16777216 bytes"),
    ],
)
async def test_files_that_hold_no_bundle(shell: Shell, content: bytes, says: str) -> None:
    """004-86: told before anybody is called; an unknown field is not lost in silence."""
    shell.file.write_bytes(content)
    told = await shell.import_()
    assert told.code == 1 and told.said.startswith("broker: ") and says in told.said
    assert "Traceback" not in told.said


async def test_what_does_not_fit_together(shell: Shell, tmp_path: Path) -> None:
    """004-02: no plaintext beyond loopback, and a token comes from a file alone."""
    for reach, says in (
        (["--target", "broker.example:7400", "--plaintext"], "loopback"),
        (["--target", "127.0.0.1", "--plaintext"], "host:port"),
        (["--target", "127.0.0.1:1", "--plaintext"], "UNAVAILABLE"),
        ([*shell.reach, "--ca-file", "ca.pem"], "exclude"),
        (["--target", "127.0.0.1:1", "--client-key-file", "key.pem"], "certificate"),
        (["--target", "127.0.0.1:1", "--ca-file", "absent.pem"], "absent.pem"),
    ):
        shell.reach = reach
        told = await shell.export()
        assert told.code == 1 and says in told.said, told.said
        assert "Traceback" not in told.said
    told = await shell.run("export", "--token", "eyJ")
    assert told.code == 2
    (tmp_path / "token").unlink()
    assert (await shell.export()).code == 1
    assert not shell.file.exists()


async def test_over_tls_with_a_client_certificate(
    stand: Stand, postgres_database: Database, warm_broker: WarmBroker, tmp_path: Path
) -> None:
    """004-02: the broker's certificate is checked, and ours is shown."""
    server, clients = trustme.CA(), trustme.CA()
    files = {name: tmp_path / name for name in ("server-ca", "server", "key", "clients", "mine")}
    server.cert_pem.write_to_path(str(files["server-ca"]))
    clients.cert_pem.write_to_path(str(files["clients"]))
    issued = server.issue_cert("127.0.0.1")
    issued.cert_chain_pems[0].write_to_path(str(files["server"]))
    issued.private_key_pem.write_to_path(str(files["key"]))
    clients.issue_cert("operator").private_key_and_cert_chain_pem.write_to_path(str(files["mine"]))

    def guarded(settings: dict[str, Any]) -> None:
        settings["server"] |= {
            "tls_certificate_file": str(files["server"]),
            "tls_key_file": str(files["key"]),
            "client_ca_file": str(files["clients"]),
        }

    with own_broker(stand, tmp_path, postgres_database, guarded) as other:
        shell = Shell(other, warm_broker, stand.project(), tmp_path)
        trust = ["--target", other.broker.address, "--ca-file", str(files["server-ca"])]
        mine = str(files["mine"])
        shell.reach = [*trust, "--client-certificate-file", mine, "--client-key-file", mine]
        done = await shell.export()
        assert (done.code, done.said) == (0, f"exported 0 records to {shell.file}\n")
        for reach in (trust, trust[:2]):
            shell.reach = reach
            told = await shell.export()
            assert told.code == 1 and "UNAVAILABLE" in told.said
