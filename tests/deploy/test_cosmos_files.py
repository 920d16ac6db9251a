"""An account made as deploy/cosmos says is one that the broker takes. Bicep itself was not run."""

from typing import Any

from providers.cosmos.container import definition
from providers.cosmos.fitness import account_fault, container_fault
from tests.deploy.bicep import Name, resources
from tests.deploy.files import DEPLOY, tool, yaml_of

FOLDER = DEPLOY / "cosmos"
RESOURCES = resources(FOLDER / "account.bicep")
ACCOUNT = "Microsoft.DocumentDB/databaseAccounts"


def test_there_is_all_that_is_needed() -> None:
    """004-34: the broker makes none of it."""
    needed = ("", "/sqlDatabases", "/sqlDatabases/containers", "/sqlRoleAssignments")
    assert list(RESOURCES) == [f"{ACCOUNT}{each}" for each in needed]


def test_the_container_is_the_one_of_the_tests() -> None:
    """004-34, 004-35: partition key, indexes, no expiry; and nothing else is set."""
    made: dict[str, Any] = RESOURCES[f"{ACCOUNT}/sqlDatabases/containers"]["properties"]["resource"]
    assert made == {"id": Name("containerName"), **definition()}
    assert container_fault(made) is None


def test_the_account_forgets_nothing() -> None:
    """004-34: one region that takes writes, and reads as new as negotiation demands."""
    made = RESOURCES[ACCOUNT]["properties"]
    assert made["enableMultipleWriteLocations"] is False
    fault = account_fault(
        consistency=made["consistencyPolicy"]["defaultConsistencyLevel"],
        regions=len(made["locations"]),
        many_writers=made["enableMultipleWriteLocations"],
    )
    assert fault is None


def test_nobody_has_a_key() -> None:
    """004-34: the identity of the process is let in, to data alone."""
    assert RESOURCES[ACCOUNT]["properties"]["disableLocalAuth"] is True
    given = RESOURCES[f"{ACCOUNT}/sqlRoleAssignments"]["properties"]
    assert given["principalId"] == Name("principalId")
    assert given["roleDefinitionId"].endswith("/00000000-0000-0000-0000-000000000002")


def test_the_emulator_is_on_this_machine_only() -> None:
    (emulator,) = yaml_of(FOLDER / "emulator.yaml")["services"].values()
    assert [each.split(":")[0] for each in emulator["ports"]] == ["127.0.0.1"]
    assert emulator["image"].startswith("${COSMOS_EMULATOR_IMAGE:?")
    assert emulator["command"] == ["--protocol", "https"]


def test_the_schema_of_compose_accepts_the_emulator() -> None:
    arguments = ("--builtin-schema", "vendor.compose-spec", FOLDER / "emulator.yaml")
    done = tool("check-jsonschema", *arguments)
    assert done.returncode == 0, done.stdout
