"""What the playground file may say, and how its mistakes are named."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from broker.devstack import playground
from broker.devstack.owner import document
from broker.devstack.owner.document import DocumentInvalidError
from broker.devstack.provider import LISTINGS, Provider
from providers.capabilities import Capability
from providers.registry import adapter


def problems(content: str) -> list[str]:
    with pytest.raises(DocumentInvalidError) as refusal:
        document.parse(content)
    return refusal.value.problems


def changed(**at: Any) -> str:
    """Returns the shipped file with values set at paths written with double underscores."""
    content = yaml.safe_load(playground.template())
    for path, value in at.items():
        *parents, last = path.split("__")
        target = content
        for parent in parents:
            target = target[parent]
        target[last] = value
    return yaml.safe_dump(content)


def test_shipped_file_is_valid() -> None:
    content = document.parse(playground.template())
    assert content.tenants.keys() == {"acme", "globex"}
    assert content.tenants["acme"].projects.keys() == content.tenants["globex"].projects.keys()
    entry = content.catalog["postgres.native-memory"]
    assert entry.adapter_version == "1.0.0"
    assert set(entry.capabilities) <= set(Capability)


@pytest.mark.parametrize("provider", [*Provider])
def test_the_catalog_lists_the_provider_and_its_adapter(provider: Provider) -> None:
    shipped = document.parse(playground.template())
    content = document.parse(playground.template(provider))
    ((name, entry),) = content.catalog.items()
    known, listed = adapter(name), LISTINGS[provider]
    assert (entry.adapter_version, entry.options_schema_version) == (
        known.version,
        known.options_schema_version,
    )
    assert (entry.options_revision, entry.hosting) == (listed.options_revision, listed.hosting)
    assert set(entry.capabilities) == set(Capability)
    assert content.tenants == shipped.tenants


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("", "the file is empty"),
        ("- a", "the file: Input should be a valid dictionary"),
        (changed(tenants=[]), "tenants: Input should be a valid dictionary"),
        (changed(tenants__acme__project={}), "tenants.acme.project: Extra inputs"),
        (
            changed(tenants__acme__projects__atlas__members__olga="ownr"),
            "tenants.acme.projects.atlas.members.olga: 'ownr' is no role of a project; "
            "there are agent-runtime, metadata-reader, owner",
        ),
        (
            changed(tenants__acme__members__tara="owner"),
            "tenants.acme.members.tara: 'owner' is no role of a tenant",
        ),
        (changed(tenants__acme__membership_revision=0), "tenants.acme.membership_revision: "),
        (changed(tenants__acme__projects={"a b": {}}), "tenants.acme.projects.a b.[key]: "),
        (
            changed(tenants__acme__projects__atlas__runs={7: {}}),
            "(write it in quotes: YAML reads it as 7)",
        ),
        (
            changed(tenants__acme__projects__atlas__runs={"r": {"memory": {"provider": "x"}}}),
            "tenants.acme.projects.atlas.runs.r.memory.provider: 'x' is not in the catalog",
        ),
        (
            changed(tenants__acme__projects__atlas__runs={"r": {"memory": {"required": ["x"]}}}),
            "tenants.acme.projects.atlas.runs.r.memory.required: not advertised: x",
        ),
        (
            changed(tenants__acme__projects__atlas__runs={"r": {"max_prompt_tokens": 0}}),
            "tenants.acme.projects.atlas.runs.r.max_prompt_tokens: ",
        ),
        (changed(catalog={}), "memory.provider: needed, as the catalog has 0 entries"),
        (changed(roles={"auditor": {}}), "roles.auditor: a role of your own needs `permissions`"),
        (
            changed(roles={"owner": {"permissions": []}}),
            "roles.owner: what a built-in role permits cannot be changed",
        ),
        (
            changed(roles={"auditor": {"permissions": ["Everything"]}}),
            "roles.auditor.permissions.0: ",
        ),
    ],
)
def test_problem_names_the_entry(content: str, problem: str) -> None:
    assert any(problem in found for found in problems(content))


@pytest.mark.parametrize("content", ["tenants: {", "tenants: {a: 1, a: 2}", "\x00", "a:\n\t- b"])
def test_no_yaml_is_refused_with_the_place(content: str) -> None:
    (problem,) = problems(content)
    assert problem.startswith("not readable as YAML: ")


def test_all_problems_are_told_at_once() -> None:
    broken = changed(tenants__acme__membership_revision=0, tenants__globex__nonsense=1)
    assert len(problems(broken)) == 2


def test_every_prefix_of_the_file_is_refused_or_grants_no_more() -> None:
    """A reader may see a file that an editor has written in part."""
    whole = document.parse(playground.template())
    for length in range(0, len(playground.template()), 3):
        try:
            part = document.parse(playground.template()[:length])
        except DocumentInvalidError:
            continue
        assert _members(part) <= _members(whole)


def _members(content: Any) -> set[tuple[str, str, str]]:
    return {
        (tenant_id, subject, role)
        for tenant_id, tenant in content.tenants.items()
        for members in (tenant.members, *(each.members for each in tenant.projects.values()))
        for subject, role in members.items()
    }
