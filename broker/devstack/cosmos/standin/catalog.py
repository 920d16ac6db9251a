"""The databases and containers of the account, kept in one file."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from broker.devstack import files
from broker.devstack.cosmos.standin import definitions
from broker.devstack.cosmos.standin.clock import Clock
from broker.devstack.cosmos.standin.container import Container
from broker.devstack.cosmos.standin.refusals import OWNER_NOT_FOUND, absent, existing


class Catalog:
    """What databases there are, and what containers in each."""

    def __init__(self, directory: Path, clock: Clock) -> None:
        """Reads the catalog and all containers; files of containers no longer in it are removed.

        Raises:
            ServerError: A container's file is damaged.
        """
        self._file = directory / "catalog.json"
        self._places = directory / "containers"
        self._clock = clock
        self._databases: dict[str, dict[str, Any]] = {}
        self._containers: dict[tuple[str, str], Container] = {}
        self._places.mkdir(exist_ok=True)
        if self._file.exists():
            self._read(json.loads(self._file.read_bytes()))
        held = {self._place(each.rid) for each in self._containers.values()}
        for path in set(self._places.iterdir()) - held:
            path.unlink()

    # --- databases ------------------------------------------------------------------------

    def databases(self) -> list[dict[str, Any]]:
        """Returns all databases, by id."""
        return [self._databases[name] for name in sorted(self._databases)]

    def database(self, name: str, substatus: int = 0) -> dict[str, Any]:
        """Returns a database.

        Raises:
            RefusalError: There is none of this name.
        """
        if name not in self._databases:
            raise absent("the database", substatus)
        return self._databases[name]

    def create_database(self, body: Any) -> dict[str, Any]:
        """Makes a database.

        Raises:
            RefusalError: There is one, or the body defines none.
        """
        made = definitions.database(body, self._clock.seconds())
        if made["id"] in self._databases:
            raise existing("the database")
        self._databases[made["id"]] = made
        self._write()
        return made

    def delete_database(self, name: str) -> None:
        """Removes a database with its containers.

        Raises:
            RefusalError: There is none of this name.
        """
        self.database(name)
        gone = [self._containers.pop(key) for key in [*self._containers] if key[0] == name]
        del self._databases[name]
        self._write()
        for container in gone:
            container.remove()

    # --- containers -----------------------------------------------------------------------

    def containers(self, database: str) -> list[Container]:
        """Returns the containers of a database, by id.

        Raises:
            RefusalError: There is no such database.
        """
        self.database(database, OWNER_NOT_FOUND)
        return [self._containers[key] for key in sorted(self._containers) if key[0] == database]

    def container(self, database: str, name: str, substatus: int = 0) -> Container:
        """Returns a container.

        Raises:
            RefusalError: There is no such container, or no such database (substatus 1003).
        """
        self.database(database, OWNER_NOT_FOUND)
        if (database, name) not in self._containers:
            raise absent("the container", substatus)
        return self._containers[database, name]

    def create_container(self, database: str, body: Any) -> Container:
        """Makes a container, with a ``_rid`` that none had before.

        Raises:
            RefusalError: There is one, or no such database, or the body defines none.
        """
        above = self.database(database, OWNER_NOT_FOUND)
        definition = definitions.container(body, above, self._clock.seconds())
        if (database, definition["id"]) in self._containers:
            raise existing("the container")
        made = self._open(database, definition)
        self._write()
        return made

    def change_container(self, database: str, name: str, body: Any) -> Container:
        """Gives a container another indexing policy or TTL.

        Raises:
            RefusalError: There is no such container, or the body changes something else.
        """
        container = self.container(database, name)
        now = self._clock.seconds()
        container.definition = definitions.changed(container.definition, body, now)
        self._write()
        return container

    def delete_container(self, database: str, name: str) -> None:
        """Removes a container with its items.

        Raises:
            RefusalError: There is no such container.
        """
        gone = self.container(database, name)
        del self._containers[database, name]
        self._write()
        gone.remove()

    def close(self) -> None:
        """Closes all files."""
        for container in self._containers.values():
            container.close()

    # --- inside ---------------------------------------------------------------------------

    def _open(self, database: str, definition: dict[str, Any]) -> Container:
        link = f"dbs/{database}/colls/{definition['id']}"
        container = Container(definition, link, self._place(definition["_rid"]), self._clock)
        self._containers[database, definition["id"]] = container
        return container

    def _place(self, rid: str) -> Path:
        return self._places / f"{base64.b16encode(rid.encode()).decode()}.journal"

    def _read(self, kept: dict[str, Any]) -> None:
        self._databases = {each["id"]: each for each in kept["databases"]}
        for database, definition in kept["containers"]:
            self._open(database, definition)

    def _write(self) -> None:
        kept = {"databases": self.databases(), "containers": [*self._definitions()]}
        files.replace(self._file, json.dumps(kept, indent=2) + "\n", files.PRIVATE)

    def _definitions(self) -> Iterator[tuple[str, dict[str, Any]]]:
        for key in sorted(self._containers):
            yield key[0], self._containers[key].definition
