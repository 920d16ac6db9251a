"""The run selection: one row for each rule (004-21, 004-22)."""

from collections.abc import Callable

import pytest

from broker.authority.selection import read_selection
from broker.domain.authority import RunSelection
from broker.domain.errors import (
    BrokerError,
    ProviderSelectionInvalidError,
    RunSelectionInvalidError,
    RunSelectionNotFoundError,
)
from broker.owners.v1 import projects_config_service_pb2 as owners
from tests.fixtures.owner_answers import CAPABILITIES, SCOPE, answer

Bend = Callable[[owners.RunSelection], object]


def read(bend: Bend = lambda _: None) -> RunSelection | BrokerError:
    bent = answer()
    bend(bent.selection)
    return read_selection(bent, "tenant-a", SCOPE)


def right(bend: Bend = lambda _: None) -> RunSelection:
    selection = read(bend)
    assert isinstance(selection, RunSelection)
    return selection


def test_right_selection_is_read() -> None:
    """004-21: every field of the selection and of its Memory candidate."""
    selection = right()
    assert (selection.tenant_id, selection.project_id, selection.run_id) == (
        "tenant-a",
        "project-a",
        "run-a",
    )
    assert (
        selection.project_revision,
        selection.project_configuration_revision,
        selection.platform_runtime_revision,
    ) == (1, 2, 3)
    assert selection.context_revision == "context-v1"
    assert selection.max_prompt_tokens == 1000
    memory = selection.memory
    assert (memory.seam, memory.provider_id) == ("Memory", "postgres.native-memory")
    assert (memory.adapter_version, memory.options_schema_version) == ("1.0.0", 1)
    assert (memory.options_revision, memory.hosting) == ("options-v1", "platform")
    assert memory.advertised == frozenset(CAPABILITIES)
    assert memory.required == frozenset(CAPABILITIES[:1])


def memory_of(selection: owners.RunSelection) -> owners.SelectedProviders:
    return selection.providers[1]


def field(name: str, value: object) -> Bend:
    return lambda selection: setattr(selection, name, value)


def candidate(name: str, value: object) -> Bend:
    return lambda selection: setattr(memory_of(selection).candidates[0], name, value)


def advertised(*names: str) -> Bend:
    def bend(selection: owners.RunSelection) -> None:
        memory_of(selection).candidates[0].advertised_capabilities[:] = names

    return bend


def required(*names: str) -> Bend:
    def bend(selection: owners.RunSelection) -> None:
        memory_of(selection).candidates[0].required_capabilities[:] = names

    return bend


def no_cap(selection: owners.RunSelection) -> None:
    selection.run_limits.ClearField("max_prompt_tokens")


def without_limits(selection: owners.RunSelection) -> None:
    selection.ClearField("run_limits")


def same_as(*names: str) -> Bend:
    def bend(selection: owners.RunSelection) -> None:
        advertised(*names)(selection)
        required(*names)(selection)

    return bend


@pytest.mark.parametrize("bend", [no_cap, without_limits])
def test_prompt_cap_may_be_absent(bend: Bend) -> None:
    """004-22: absent means that the run sets no cap."""
    assert right(bend).max_prompt_tokens is None


RIGHT: dict[str, Bend] = {
    "no_other_seam": lambda selection: selection.providers.remove(selection.providers[0]),
    "no_requirement": required(),
    "most_capabilities": advertised(CAPABILITIES[0], *(f"c{n}" for n in range(63))),
    "version_of_many_digits": candidate("adapter_version", "10.20.300"),
    "smallest_cap": lambda selection: setattr(selection.run_limits, "max_prompt_tokens", 1),
    "longest_context_revision": field("context_revision", "c" * 256),
}


@pytest.mark.parametrize("bend", RIGHT.values(), ids=RIGHT)
def test_right_at_its_limits(bend: Bend) -> None:
    """004-22: limits are inclusive."""
    right(bend)


INVALID: dict[str, Bend] = {
    "tenant_foreign": field("tenant_id", "tenant-b"),
    "tenant_absent": field("tenant_id", ""),
    "project_foreign": field("project_id", "project-b"),
    "run_foreign": field("run_id", "run-b"),
    "project_revision_0": field("project_revision", 0),
    "project_configuration_revision_0": field("project_configuration_revision", 0),
    "platform_runtime_revision_0": field("platform_runtime_revision", 0),
    "project_revision_negative": field("project_revision", -1),
    "context_revision_absent": field("context_revision", ""),
    "context_revision_blank": field("context_revision", " "),
    "context_revision_too_long": field("context_revision", "c" * 257),
    "cap_0": lambda selection: setattr(selection.run_limits, "max_prompt_tokens", 0),
    "cap_negative": lambda selection: setattr(selection.run_limits, "max_prompt_tokens", -1),
    "cardinality_unset": lambda selection: setattr(memory_of(selection), "cardinality", 0),
    "cardinality_unknown": lambda selection: setattr(memory_of(selection), "cardinality", 4),
    "cardinality_unknown_elsewhere": lambda selection: setattr(
        selection.providers[0], "cardinality", 4
    ),
    "seam_absent": lambda selection: setattr(selection.providers[0], "seam", ""),
    "seam_of_the_candidate_differs": candidate("seam", "Tools"),
    "seam_differs_elsewhere": lambda selection: setattr(
        selection.providers[0].candidates[1], "seam", "Memory"
    ),
    "provider_id_absent": candidate("provider_id", ""),
    "provider_id_malformed": candidate("provider_id", "a/b"),
    "version_absent": candidate("adapter_version", ""),
    "version_of_two_parts": candidate("adapter_version", "1.0"),
    "version_of_four_parts": candidate("adapter_version", "1.0.0.0"),
    "version_with_a_zero_before": candidate("adapter_version", "01.0.0"),
    "version_with_a_line_end": candidate("adapter_version", "1.0.0\n"),
    "schema_version_0": candidate("options_schema_version", 0),
    "options_revision_blank": candidate("options_revision", "  "),
    "options_revision_absent": candidate("options_revision", ""),
    "hosting_absent": candidate("hosting", ""),
    "layer_on_an_exclusive_candidate": candidate("layer", "base"),
    "nothing_advertised": same_as(),
    "blank_capability": advertised(*CAPABILITIES, " "),
    "capability_listed_twice": advertised(*CAPABILITIES, CAPABILITIES[0]),
    "requirement_listed_twice": required(CAPABILITIES[0], CAPABILITIES[0]),
    "too_many_capabilities": advertised(CAPABILITIES[0], *(f"c{n}" for n in range(64))),
    "requirement_not_advertised": required("memory.context.compose"),
}


@pytest.mark.parametrize("bend", INVALID.values(), ids=INVALID)
def test_malformed_selection(bend: Bend) -> None:
    """004-14, 004-22: malformed or foreign: the owner's fault, not the provider's."""
    assert type(read(bend)) is RunSelectionInvalidError


def second_memory(selection: owners.RunSelection) -> None:
    selection.providers.append(memory_of(selection))


def second_candidate(selection: owners.RunSelection) -> None:
    memory_of(selection).candidates.append(memory_of(selection).candidates[0])


def no_candidate(selection: owners.RunSelection) -> None:
    del memory_of(selection).candidates[:]


def renamed(seam: str) -> Bend:
    def bend(selection: owners.RunSelection) -> None:
        memory_of(selection).seam = seam
        memory_of(selection).candidates[0].seam = seam

    return bend


NOT_ONE_PROVIDER: dict[str, Bend] = {
    "no_memory": lambda selection: selection.providers.remove(memory_of(selection)),
    "no_seam_at_all": lambda selection: selection.ClearField("providers"),
    "memory_in_small_letters": renamed("memory"),
    "two_memories": second_memory,
    "ordered": lambda selection: setattr(
        memory_of(selection), "cardinality", owners.CARDINALITY_ORDERED
    ),
    "layered": lambda selection: setattr(
        memory_of(selection), "cardinality", owners.CARDINALITY_LAYERED
    ),
    "no_candidate": no_candidate,
    "two_candidates": second_candidate,
}


@pytest.mark.parametrize("bend", NOT_ONE_PROVIDER.values(), ids=NOT_ONE_PROVIDER)
def test_not_exactly_one_exclusive_memory_candidate(bend: Bend) -> None:
    """004-21: exactly one Memory entry, exclusive, with exactly one candidate."""
    assert type(read(bend)) is ProviderSelectionInvalidError


def test_no_selection() -> None:
    """004-14: an absent selection is not found, and the refusal is handed back, not raised."""
    bent = answer()
    bent.ClearField("selection")
    assert type(read_selection(bent, "tenant-a", SCOPE)) is RunSelectionNotFoundError


def test_refusal_keeps_no_frames() -> None:
    """004-02: a refusal that is kept for later holds on to nothing of the call."""
    refusal = read(field("run_id", "run-b"))
    assert isinstance(refusal, BrokerError)
    assert refusal.__traceback__ is None
