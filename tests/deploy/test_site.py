"""What the README and clients.md say to paste, pasted: `broker serve` over TLS among its peers."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from broker.devstack.redis import Flavour
from broker.devstack.redis.binaries import find
from tests.deploy.files import ROOT, TOOLS, blocks, clients, readme_blocks
from tests.fixtures.broker import WITH_PARENT, free_port

BLOCKS = {block.run: block.text for block in blocks(clients()) if block.run}
START_SECONDS = 120.0
RUN_SECONDS = 120.0
SITE, SERVE, CALL, REDIS, IN_REDIS = (text for text in readme_blocks("sh") if "site" in text)
COUNT = """
import asyncio, os, pathlib
os.environ["GRPC_DEFAULT_SSL_ROOTS_FILE_PATH"] = ".broker-site/tls/ca.crt"
print(asyncio.run(hellos(pathlib.Path(".broker-site/olga.token").read_text())))
"""
PREPARE = [line for line in SERVE.splitlines() if "broker serve" not in line]
KEYS = """
export REDISCLI_AUTH="$(cat .broker-site/redis/password)" ADDRESS=localhost:6380
redis-cli --tls --cacert .broker-site/tls/ca.crt --user admin -p "${ADDRESS#*:}" --scan
"""
CALLED = 'redis-server() { exec -a redis-server REDIS "$@"; }\n'  # a program by the name it needs


class Keyboard:
    """Runs what is pasted, in a folder of its own; ports are others than those of the documents."""

    def __init__(self, room: Path) -> None:
        self._room = room
        self._ports = {f":{port}": f":{free_port()}" for port in (7400, 7402, 7403, 6380)}
        (room / "proto").symlink_to(ROOT / "proto")
        shutil.copytree(ROOT / "deploy" / "redis", room / "deploy" / "redis")
        config = room / "deploy" / "redis" / "redis.conf"
        config.write_text(config.read_text().replace("6380", self._ports[":6380"].strip(":")))
        (room / ".venv").symlink_to(TOOLS.parent)

    def shell(self, text: str) -> subprocess.CompletedProcess[str]:
        """Paste some shell, and wait."""
        return self._run("bash", "-euc", self._placed(text))

    def python(self, text: str) -> subprocess.CompletedProcess[str]:
        """Run some Python, and wait."""
        return self._run(sys.executable, "-c", self._placed(text))

    def running(
        self, ready: Callable[[str], bool], *command: str, **more: str
    ) -> AbstractContextManager[Path]:
        """Run a module that goes on, once what it wrote says that it is ready."""
        return self.going(ready, sys.executable, "-m", *command, **more)

    def redis(self) -> AbstractContextManager[Path]:
        """Paste what starts a Redis; Debian may keep the program under another name."""
        called = CALLED.replace("REDIS", str(find(Flavour.REDIS).path))
        text = self._placed(f"{called}{REDIS}")
        return self.going(lambda log: "Ready to accept" in log, "bash", "-euc", text)

    @contextmanager
    def going(self, ready: Callable[[str], bool], *command: str, **more: str) -> Iterator[Path]:
        """Run a program that goes on, once what it wrote says that it is ready."""
        log = self._room / f"{len(list(self._room.iterdir()))}.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                [*WITH_PARENT, *command],
                cwd=self._room,
                env=self._environment(**more),
                stdout=output,
                stderr=output,
            )
        try:
            deadline = time.monotonic() + START_SECONDS
            while not ready(log.read_text()):
                assert process.poll() is None and time.monotonic() < deadline, log.read_text()
                time.sleep(0.1)
            yield log
            process.send_signal(signal.SIGTERM)
            assert process.wait(60) == 0
        finally:
            if process.poll() is None:
                process.kill()
                process.wait(60)

    def serving(self, **more: str) -> AbstractContextManager[Path]:
        """Run `broker serve` as the README says."""
        listens = dict(
            zip(("LISTEN", "HEALTH_LISTEN", "METRICS_LISTEN"), self._ports.values(), strict=False)
        )
        given = {f"BROKER_SERVER__{name}": f"127.0.0.1{port}" for name, port in listens.items()}
        command = ("broker", "serve", "--config", ".broker-site/broker.toml")
        return self.running(lambda log: '"event":"serving"' in log, *command, **given, **more)

    @contextmanager
    def kept(self, *names: str) -> Iterator[None]:
        """Put files of the site back in the end."""
        files = [self._room / ".broker-site" / name for name in names]
        before = [each.read_bytes() for each in files]
        try:
            yield
        finally:
            for each, content in zip(files, before, strict=True):
                each.write_bytes(content)

    def _placed(self, text: str) -> str:
        text = text.replace("broker.example", "localhost")
        return re.sub(r":(740[023]|6380)\b", lambda found: self._ports[found.group()], text)

    def _run(self, *command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            command,
            cwd=self._room,
            env=self._environment(),
            capture_output=True,
            text=True,
            check=False,
            timeout=RUN_SECONDS,
        )

    def _environment(self, **more: str) -> dict[str, str]:
        kept = {name: value for name, value in os.environ.items() if name != "GRPC_VERBOSITY"}
        path = os.pathsep.join([str(TOOLS), os.environ["PATH"]])
        return {**kept, "PATH": path, "PYTHONPATH": str(ROOT), **more}


pytestmark = pytest.mark.timeout(400)  # programs are started one after the other


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Keyboard]:
    """Everything but the broker."""
    keyboard = Keyboard(tmp_path_factory.mktemp("site"))
    assert SITE.split("-m ")[1].split() == ["broker.devstack.site"]
    with keyboard.running(lambda log: "the owner run" in log, "broker.devstack.site"):
        prepare = "\n".join(PREPARE)
        prepared = keyboard.shell(f"{prepare}\n{PREPARE[-1]}")  # can be repeated
        assert prepared.returncode == 0, prepared.stderr
        assert "the marker is there already: knowledge-1, generation 1" in prepared.stdout
        yield keyboard


def test_what_is_pasted_works_and_the_log_is_json(site: Keyboard) -> None:
    with site.serving() as log:
        made = site.shell(CALL)
        assert json.loads(made.stdout)["record"]["content"] == "Hello.", made.stderr
        found = site.shell(BLOCKS["grpcurl"])
        assert json.loads(found.stdout)["records"], found.stderr
        refused = site.shell(BLOCKS["grpcurl"].replace("olga", "rita"))
        assert "PermissionDenied" in refused.stderr
        bound = site.shell(BLOCKS["token"])
        assert bound.stdout.count(".") == 2, bound.stderr
        assert "SERVING" in site.shell(BLOCKS["health"]).stdout
        (snippet,) = (text for text in readme_blocks("python") if "hellos" in text)
        counted = site.python(f"{snippet}\n{COUNT}")
        assert counted.stdout == "1\n", counted.stderr
        # A client that speaks no TLS: gRPC's core has a line for it, which is no JSON.
        plain = BLOCKS["grpcurl"].replace("-cacert .broker-site/tls/ca.crt", "-plaintext")
        assert site.shell(plain).returncode != 0
        assert all(json.loads(line)["event"] for line in log.read_text().splitlines())


def test_clients_show_a_certificate_where_it_is_asked_for(site: Keyboard) -> None:
    with site.serving(BROKER_SERVER__CLIENT_CA_FILE=".broker-site/tls/ca.crt"):
        assert site.shell(BLOCKS["grpcurl"]).returncode != 0
        for name in ("mutual-grpcurl", "mutual-buf"):
            done = site.shell(BLOCKS[name])
            assert json.loads(done.stdout) is not None, done.stderr
        done = site.python(BLOCKS["mutual"])
        assert done.returncode == 0, done.stderr


def test_the_same_with_redis(site: Keyboard) -> None:
    """The blocks as they are, but for ports and the last line of each, which goes on."""
    with site.kept("broker.toml", "playground.yaml"), site.redis():
        prepared = site.shell(IN_REDIS.rpartition("broker serve")[0])
        assert prepared.returncode == 0, prepared.stderr
        assert "the marker is written: knowledge-redis-1, generation 1" in prepared.stdout
        with site.serving():
            made = site.shell(CALL.replace("run-1", "run-2"))
            assert json.loads(made.stdout)["record"]["content"] == "Hello.", made.stderr
        assert ":heads" in site.shell(KEYS).stdout


def test_every_block_is_run() -> None:
    used = set(re.findall(r"BLOCKS\[\"([a-z-]+)\"\]", Path(__file__).read_text()))
    assert used | {"mutual-grpcurl", "mutual-buf"} == set(BLOCKS)
