"""An operator of Redis at the keyboard: a server from the shipped files, blocks of the runbook."""

import os
import re
import subprocess
import time
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Final

from broker.devstack.authority import LocalAuthority
from broker.devstack.processes.ports import reserve
from broker.devstack.redis import Flavour
from broker.devstack.redis.binaries import find
from providers.redis.options import RedisOptions
from tests.deploy.files import DEPLOY, ROOT, TOOLS
from tests.deploy.operator import text_of
from tests.fixtures.broker import WITH_PARENT

RESOURCE: Final = "knowledge-redis-1"
USERS: Final = ("broker", "operator", "admin")
_START_SECONDS = 60.0
_CALLED = 'exec -a redis-server "$0" "$@"'  # Debian keeps the program under another name


@dataclass
class RedisOperator:
    """Runs blocks of the runbook in ``room``; paths and the port are others than there."""

    room: Path
    passwords: dict[str, str] = field(default_factory=dict)
    process: subprocess.Popen[bytes] | None = None

    def __post_init__(self) -> None:
        self._held = reserve()
        self.port = int(self._held.getsockname()[1])
        self.users = self.room / "users.acl"
        self.data = self.room / "data"
        self.data.mkdir()
        self.ca_file = LocalAuthority(self.room / "tls").ca_file

    def run(self, name: str, given: str = "", **more: str) -> str:
        """Run a block with an answer to what it asks; return what it printed."""
        return self.shell(text_of(name), given, **more)

    def shell(self, text: str, given: str = "", **more: str) -> str:
        """Run any shell; a command that fails ends it. ``admin`` is what the runbook makes it."""
        done = subprocess.run(
            ["bash", "-euc", self._placed(text_of("redis-admin") + text)],
            cwd=self.room,
            env=self._environment(**more),
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def write_users(self, shipped: str = "") -> None:
        """Write the access list as it is shipped, with the hashes of the passwords."""
        text = shipped or (DEPLOY / "redis" / "users.acl").read_text()
        for user in USERS:
            digest = sha256(self.passwords[user].encode()).hexdigest()
            text = re.sub(rf"^(user {user} .*)#HASH", rf"\1#{digest}", text, flags=re.MULTILINE)
        assert "HASH" not in text
        self.users.write_text(text)

    def start(self) -> None:
        """Start the server with the configuration as it is shipped."""
        shipped = (DEPLOY / "redis" / "redis.conf").read_text()
        config = self.room / "redis.conf"
        config.write_text(self._placed(shipped))
        command = [*WITH_PARENT, "bash", "-c", _CALLED, str(find(Flavour.REDIS).path), str(config)]
        with (self.room / "server.log").open("ab") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log)
        deadline = time.monotonic() + _START_SECONDS
        while "PONG" not in self.shell("admin PING 2>&1 || true"):
            assert self.process.poll() is None and time.monotonic() < deadline, self.log()
            time.sleep(0.05)

    def stop(self) -> None:
        """Stop the server as its service would."""
        if self.process is not None:
            self.process.terminate()
            self.process.wait(_START_SECONDS)

    def close(self) -> None:
        """Stop the server and let the port go."""
        self.stop()
        self._held.close()

    def log(self) -> str:
        """What the server wrote."""
        return (self.room / "server.log").read_text()

    def options(self, generation: int = 1, password: str = "") -> RedisOptions:
        """The options of a provider that serves."""
        return RedisOptions(
            endpoint=f"rediss://localhost:{self.port}",
            resource_id=RESOURCE,
            generation=generation,
            options_revision="v1",
            username="broker",
            password=password or self.passwords["broker"],
            ca_file=str(self.ca_file),
        )

    def _placed(self, text: str) -> str:
        for shipped, own in (
            ("/etc/broker/redis-ca.crt", self.ca_file),
            ("/etc/redis", self.room),
            ("/var/lib/redis", self.data),
            ("redis.example", "localhost"),
            ("6380", self.port),
        ):
            text = text.replace(shipped, str(own))
        return text

    def _environment(self, **more: str) -> dict[str, str]:
        path = os.pathsep.join([str(TOOLS), os.environ["PATH"]])
        given = {"REDISCLI_AUTH": self.passwords.get("admin", ""), "PYTHONPATH": str(ROOT)}
        return {**os.environ, **given, "PATH": path, **more}
