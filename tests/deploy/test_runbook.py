"""The runbook's commands do what it says, on a PostgreSQL of their own."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
import pytest

from broker.store.fitness import SchemaUnfitError, check_schema
from providers.conformance import specimens
from providers.errors import NegotiationRefusedError, ResourceMismatchError
from providers.migration import migrate, open_engine
from providers.model import ProjectKey
from providers.postgres.migrations import TREE
from providers.postgres.provider import PostgresMemoryProvider
from providers.requests import Committed, LoadRequest
from tests.deploy.files import blocks, runbook
from tests.deploy.operator import Operator

PROJECT = ProjectKey("t1", "p1")
CURED = (
    "GRANT DELETE ON memory.records TO broker_runtime",
    "GRANT UPDATE (content) ON memory.revisions TO broker_runtime",
    "GRANT INSERT ON memory.resource TO broker_runtime",
    "GRANT CREATE ON SCHEMA memory TO broker_runtime",
    "GRANT TRUNCATE ON memory.claims TO PUBLIC",
)


@asynccontextmanager
async def provider(
    operator: Operator, role: str = "broker_runtime", generation: int = 1
) -> AsyncIterator[PostgresMemoryProvider]:
    opened = PostgresMemoryProvider(operator.options(role, generation))
    try:
        yield opened
    finally:
        await opened.close()


async def negotiate(operator: Operator, role: str = "broker_runtime", generation: int = 1) -> None:
    async with provider(operator, role, generation) as opened:
        await opened.negotiate(timeout=10)


async def check_store(operator: Operator) -> None:
    engine = open_engine(operator.dsn("broker_runtime"))
    try:
        await check_schema(engine, timeout=10)
    finally:
        await engine.dispose()


def test_every_block_says_whether_it_is_run_and_is() -> None:
    marked = len(list(blocks()))
    assert marked == len(re.findall(r"^ *```\w", runbook(), re.MULTILINE)) > 10
    names = [block.run for block in blocks() if block.run]
    assert len(names) == len(set(names))
    run = set()
    for file in Path(__file__).parent.glob("*.py"):
        run |= set(re.findall(r"(?:\.(?:run|sql)|text_of)\(\"([a-z-]+)\"", file.read_text()))
    assert run == set(names)


async def test_the_roles_serve_with_exactly_the_rights_of_migrate(operator: Operator) -> None:
    told = operator.run("migrate")  # can be repeated
    for schema in ("knowledge", "memory"):
        assert f"broker: schema {schema} is migrated, broker_runtime has its rights on it\n" in told
    await negotiate(operator)
    await check_store(operator)
    held = {tuple(line.split("|")) for line in operator.sql("rights").split()}
    # Updates are granted for columns only; negotiation demands exactly those.
    whole = {(table, privilege) for _, table, privilege, column in held if not column}
    assert {privilege for _, privilege in whole} == {"SELECT", "INSERT", "DELETE"}
    assert [table for table, privilege in whole if privilege == "DELETE"] == ["recall_vectors"]
    assert {privilege for _, _, privilege, column in held if column} == {"UPDATE"}


def test_the_server_does_not_log_rows_of_the_runtime_role(operator: Operator) -> None:
    operator.sql("second-role")
    for role in ("broker_runtime", "broker_runtime_b"):
        operator.set_password(role)
        assert operator.psql("SHOW log_error_verbosity", role).strip() == "terse"


async def test_one_right_too_many_is_refused_until_the_next_migrate(operator: Operator) -> None:
    for grant in CURED:
        operator.psql(grant)
        with pytest.raises(NegotiationRefusedError) as refused:
            await negotiate(operator)
        assert refused.value.fact == "rights"
        await migrate(TREE, operator.dsn("broker_migrator"), "broker_runtime")
        await negotiate(operator)
    operator.psql("GRANT UPDATE ON knowledge.pins TO broker_runtime")
    with pytest.raises(SchemaUnfitError, match="more rights"):
        await check_store(operator)
    operator.run("migrate")
    await check_store(operator)


async def test_a_runtime_role_in_another_role_is_refused(operator: Operator) -> None:
    operator.psql("GRANT broker_migrator TO broker_runtime")
    with pytest.raises(NegotiationRefusedError) as refused:
        await negotiate(operator)
    assert refused.value.fact == "rights"


@pytest.mark.parametrize("role", ["broker_runtime", "broker_backup"])
async def test_the_other_roles_cannot_change_the_schema(operator: Operator, role: str) -> None:
    connection = await asyncpg.connect(operator.dsn(role))
    try:
        for statement in (
            "DROP TABLE memory.records",
            "UPDATE memory.resource SET generation = 2",
            "DELETE FROM knowledge.pins",
            "CREATE TABLE mine ()",
            "CREATE SCHEMA mine",
        ):
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute(statement)
    finally:
        await connection.close()


def test_a_marker_is_refused_unless_it_may_say_the_same_already(operator: Operator) -> None:
    def init(*options: str) -> str:
        command = " ".join(("broker init-resource", *options))
        return operator.shell(f"{command} 2>&1 || echo refused")

    same = ("--resource-id", "knowledge-production", "--generation", "1")
    assert init(*same) == "broker: the resource has this marker already\nrefused\n"
    there = "broker: the marker is there already: knowledge-production, generation 1\n"
    assert init(*same, "--if-absent") == there
    for other in (("--resource-id", "other", *same[2:]), (*same[:3], "2")):
        told = init(*other, "--if-absent")
        assert told == "broker: the resource has another marker already\nrefused\n"


@pytest.mark.timeout(300)  # the command line is started a dozen times
async def test_a_second_role_takes_over(operator: Operator) -> None:
    operator.sql("second-role")
    operator.set_password("broker_runtime_b")
    operator.run("second-role-grants")
    await negotiate(operator)
    await negotiate(operator, "broker_runtime_b")
    operator.run("backup")
    operator.sql("make-room", database="postgres")
    operator.run("restore")
    operator.psql("GRANT CONNECT ON DATABASE knowledge TO broker_runtime_b")
    operator.run("second-role-grants")
    for database in ("knowledge", "knowledge_before_restore"):
        with pytest.raises(AssertionError, match="some objects depend on it"):
            operator.sql("first-role-gone")
        operator.sql("first-role-rights", database=database)
    operator.sql("first-role-gone")
    await negotiate(operator, "broker_runtime_b")
    left = operator.psql("SELECT rolname FROM pg_roles WHERE rolname LIKE 'broker_runtime%'")
    assert left == "broker_runtime_b\n"


async def test_a_restored_backup_serves_under_the_next_generation(operator: Operator) -> None:
    async with provider(operator) as opened:
        for record in ("kept", "forgotten"):
            write = specimens.create(PROJECT, specimens.decision(record))
            assert await opened.commit(write, timeout=10) == Committed()
            if record == "kept":
                operator.run("backup")
    operator.sql("make-room", database="postgres")
    operator.run("restore")
    await negotiate(operator)  # nothing in the database tells that it is an older one
    told = operator.sql("raise-generation", role="broker_migrator")
    assert "knowledge-production|2" in told
    with pytest.raises(ResourceMismatchError):
        await negotiate(operator)
    await negotiate(operator, generation=2)
    await check_store(operator)
    async with provider(operator, generation=2) as opened:
        request = LoadRequest(project=PROJECT, record_ids=("kept", "forgotten"))
        assert set((await opened.load(request, timeout=10)).heads) == {"kept"}
