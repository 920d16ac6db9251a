"""The stand-in as a process: what outlives it, and what it does not outlive."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import aiohttp
import pytest
from azure.core.exceptions import AzureError

from broker.devstack.cosmos import CosmosServer
from broker.devstack.processes.errors import ServerError, ServerInUseError, ServerStartError
from tests.fixtures.cosmos import Place, cosmos_place, raw_session

PATIENCE = 60.0
OWNER = """
import sys
from broker.devstack.cosmos import CosmosServer
server = CosmosServer(sys.argv[1]).start()
if sys.argv[2] == "frozen":
    server.freeze()
print(server.pid, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[CosmosServer]:
    """A stand-in of the test's own, to be ended as it likes."""
    with CosmosServer(tmp_path / "cosmos") as running:
        yield running


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


def batch(name: str, size: int = 3) -> list[tuple[str, tuple[dict[str, object]]]]:
    items: list[dict[str, object]] = [
        {"id": f"{name}.{n}", "projectId": "p", "name": name} for n in range(size)
    ]
    return [("create", (item,)) for item in items]


def journal(server: CosmosServer) -> Path:
    (path,) = (server.data_dir / "containers").iterdir()
    return path


@pytest.mark.parametrize("ending", [CosmosServer.stop, CosmosServer.kill])
async def test_everything_outlives_the_process(
    server: CosmosServer, ending: Callable[[CosmosServer], None]
) -> None:
    """004-43, 004-63: with etags, ids and address, for the client that was there before as well."""
    async with cosmos_place(server) as place:
        await place.container.create_item({"id": "gone", "projectId": "p"})
        await place.container.delete_item("gone", "p")
        item = await place.container.create_item({"id": "é", "projectId": "t/p", "n": 1})
        definition, address, key = await place.container.read(), server.endpoint, server.key
        ending(server)
        assert not server.is_running
        server.start()
        assert (server.endpoint, server.key) == (address, key)
        assert await place.container.read() == definition
        assert await place.container.read_item("é", "t/p") == item
        assert await place.ids() == set()
        fresh = await place.container.create_item({"id": "b", "projectId": "t/p"})
        assert fresh["_rid"] != item["_rid"]


async def test_what_was_acknowledged_outlives_a_crash_and_nothing_is_half_there(
    server: CosmosServer,
) -> None:
    """C-1, C-7, 004-35: under load, again and again; a lost reply may have been done or not."""
    acknowledged: set[str] = set()
    begun: set[str] = set()
    done = asyncio.Semaphore(0)

    async def write(place: Place, writer: str) -> None:
        number = 0
        while True:
            name = f"{writer}-{number}"
            begun.add(name)
            try:
                await place.container.execute_item_batch(batch(name), "p")
            except AzureError:
                return
            acknowledged.add(name)
            done.release()
            number += 1

    async with cosmos_place(server) as place:
        for turn in range(4):
            writers = [asyncio.create_task(write(place, f"{turn}{each}")) for each in "abcd"]
            for _ in range(25):
                await done.acquire()
            server.kill()
            await asyncio.gather(*writers)
            server.start()
        found = await place.ids()
    names = {item_id.partition(".")[0] for item_id in found}
    assert {f"{name}.{n}" for name in names for n in range(3)} == found
    assert acknowledged <= names <= begun


@pytest.mark.parametrize("left", [0, 1, 8, 9, 60, -1])
async def test_a_change_that_was_cut_off_never_was(server: CosmosServer, left: int) -> None:
    """004-35: the end of the file, wherever a crash has cut it."""
    async with cosmos_place(server) as place:
        await place.container.execute_item_batch(batch("first"), "p")
        size = journal(server).stat().st_size
        await place.container.execute_item_batch(batch("second"), "p")
        server.kill()
        os.truncate(
            journal(server), size + left if left >= 0 else journal(server).stat().st_size - 1
        )
        server.start()
        await place.container.read()  # on a new connection: no write is sent on a dead one
        assert await place.ids() == {"first.0", "first.1", "first.2"}
        await place.container.execute_item_batch(batch("third"), "p")
        server.stop()
        server.start()
        await place.container.read()
        assert {each.partition(".")[0] for each in await place.ids()} == {"first", "third"}


async def test_damage_is_not_passed_over(server: CosmosServer) -> None:
    """004-44: a file that is wrong before its end keeps the stand-in from starting."""
    async with cosmos_place(server) as place:
        await place.container.execute_item_batch(batch("first"), "p")
        await place.container.execute_item_batch(batch("second"), "p")
    server.stop()
    content = bytearray(journal(server).read_bytes())
    content[20] ^= 1
    journal(server).write_bytes(content)
    with pytest.raises(ServerStartError, match="damaged"):
        server.start()
    assert not server.is_running


@pytest.mark.parametrize("killed", [False, True])
async def test_what_found_no_room_never_was(server: CosmosServer, *, killed: bool) -> None:
    """004-35, C-1, C-7: a full disk loses nothing that was there, and nothing that comes later."""

    def limit(size: int) -> None:
        resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    async with cosmos_place(server) as place:
        await place.container.execute_item_batch(batch("first"), "p")
        limit(journal(server).stat().st_size + 100)
        for size in (3, 20):
            with pytest.raises(AzureError):
                await place.container.execute_item_batch(batch("none", size), "p")
        assert await place.ids() == {"first.0", "first.1", "first.2"}
        if killed:
            server.kill()
            server.start()
            await place.container.read()  # on a new connection: no write is sent on a dead one
        else:
            limit(resource.RLIM_INFINITY)
        await place.container.execute_item_batch(batch("later"), "p")
        server.kill()
        server.start()
        await place.container.read()
        assert {each.partition(".")[0] for each in await place.ids()} == {"first", "later"}


async def test_what_a_lost_container_left_is_removed(server: CosmosServer) -> None:
    async with cosmos_place(server) as place:
        left = journal(server).with_name("00.journal")
        left.write_bytes(b"")
        server.stop()
        server.start()
        assert not left.exists()
        await place.client.delete_database(place.database.id)
        assert not any((server.data_dir / "containers").iterdir())


async def test_a_frozen_stand_in_is_silent_and_goes_on(server: CosmosServer) -> None:
    """R-1, R-2: its connections stay open, and it answers when it is thawed."""
    async with raw_session(server) as raw:
        assert (await raw.send("GET", "")).status == 200
        server.freeze()
        assert server.is_running
        asking = asyncio.create_task(raw.send("GET", ""))
        done, _ = await asyncio.wait([asking], timeout=0.5)
        assert not done
        server.thaw()
        assert (await asking).status == 200
    server.freeze()
    server.stop()
    assert not server.is_running


async def test_one_of_many_wins(server: CosmosServer) -> None:
    """C-2, 004-41: of replacements that expect one etag."""
    async with cosmos_place(server) as place:
        item = await place.container.create_item({"id": "a", "projectId": "p"})

        async def replace(n: int) -> bool:
            body = {"id": "a", "projectId": "p", "n": n}
            answer = await place.write("PUT", "docs/a", body, if_match=item["_etag"])
            assert answer.status in {200, 412}
            return answer.status == 200

        won = await asyncio.gather(*(replace(n) for n in range(30)))
        assert won.count(True) == 1
        assert (await place.container.read_item("a", "p"))["n"] == won.index(True)


@pytest.mark.parametrize("state", ["running", "frozen"])
def test_it_dies_with_its_owner(tmp_path: Path, state: str) -> None:
    """However the owner ends, and also while the stand-in is frozen."""
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path), state],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert owner.stdin is not None
    assert owner.stdout is not None
    pid = int(owner.stdout.readline())
    assert not is_gone(pid)
    owner.kill()
    owner.wait()
    owner.stdin.close()
    owner.stdout.close()
    wait_until(lambda: is_gone(pid), "the end of the stand-in")


def test_a_directory_has_one_stand_in(server: CosmosServer) -> None:
    with pytest.raises(ServerInUseError, match="in use"):
        CosmosServer(server.data_dir).start()
    assert server.start().is_running


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    """The only one that will do is an error; a wish is not."""
    server = CosmosServer(tmp_path)
    with server:
        first = server.endpoint
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", int(first.rstrip("/").rpartition(":")[2])))
        taken.listen()
        port = taken.getsockname()[1]
        with server:
            assert server.endpoint != first
        with pytest.raises(ServerStartError, match="cannot be used"):
            CosmosServer(tmp_path, port).start()


def test_before_the_start_there_is_nothing(tmp_path: Path) -> None:
    server = CosmosServer(tmp_path / "new")
    server.stop()
    assert not (tmp_path / "new").exists()
    for ask in (lambda: server.endpoint, lambda: server.pid, lambda: server.control):
        with pytest.raises(ServerError, match="started"):
            ask()


async def test_it_can_be_started_in_an_event_loop(tmp_path: Path) -> None:
    async with CosmosServer(tmp_path) as server:
        assert server.control.counts() == {}
    assert not server.is_running


def test_what_is_secret_is_readable_by_nobody_else(server: CosmosServer) -> None:
    for name in ("key", "account.json", "tls/server.key"):
        assert stat.S_IMODE((server.data_dir / name).stat().st_mode) == 0o600


async def test_nothing_is_logged(server: CosmosServer) -> None:
    """No key, no id, no content; not even of what was refused."""
    async with cosmos_place(server) as place:
        await place.container.create_item({"id": "secret-id", "projectId": "p"})
        await place.write("POST", "docs", b"secret-content")
        await place.raw.send("GET", "", authorization="secret")
        async with aiohttp.ClientSession() as session:
            with pytest.raises(aiohttp.ClientError):
                await session.get(server.endpoint.replace("https", "http"))
    server.stop()
    assert server.log_file.read_text() == ""


def test_people_can_run_it(tmp_path: Path) -> None:
    """``python -m broker.devstack.cosmos``: it says that it is no service, and where it is."""
    command = [sys.executable, "-m", "broker.devstack.cosmos", "--data", str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(4)]
        again = subprocess.run(command, capture_output=True, text=True, check=False)
        process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 0
    assert lines[0].startswith("STAND-IN")
    assert lines[1].startswith("endpoint https://127.0.0.1:")
    assert Path(lines[2].split()[1]).read_text() == CosmosServer(tmp_path).key
    assert Path(lines[3].split()[1]) == CosmosServer(tmp_path).ca_file
    assert again.returncode == 1
    assert "is in use" in again.stderr
