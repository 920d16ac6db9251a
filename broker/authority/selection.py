"""Reads the accepted selection of a run: its identity, its revisions, its one Memory provider."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from broker.authority.syntax import is_label
from broker.domain.authority import Candidate, RunSelection
from broker.domain.call import RunScope
from broker.domain.errors import (
    AuthorityResponseInvalidError,
    BrokerError,
    ProviderSelectionInvalidError,
    RunSelectionInvalidError,
    RunSelectionNotFoundError,
)
from broker.domain.fields import is_identifier
from broker.owners.v1 import projects_config_service_pb2 as owners

MEMORY_SEAM = "Memory"
CAPABILITIES_MAX = 64

KNOWN_MAX: Final = 64
"""So many kinds of selections are known again within one call; further ones are judged anew."""

_CARDINALITIES = frozenset(int(value) for value in owners.Cardinality.values()) - {0}
_VERSION = re.compile(r"(0|[1-9][0-9]{0,8})(\.(0|[1-9][0-9]{0,8})){2}\Z")


class SelectionReader:
    """Reads the selections of one call's runs, of one project; keeps nothing beyond the call.

    Runs whose selections differ in their run's id alone, as most of a project do, are judged once
    and share what was read (004-69).
    """

    def __init__(self, tenant_id: str, project_id: str) -> None:
        """Take whose selections they must be."""
        self._tenant_id = tenant_id
        self._project_id = project_id
        self._read: dict[bytes, RunSelection] = {}

    def read(self, entry: owners.RunSelectionEntry) -> RunSelection | BrokerError:
        """Return what an entry says about its run, as ``read_selection`` does; use it once."""
        if entry.selection.run_id != entry.run_id or not entry.HasField("selection"):
            return self._judged(entry)
        entry.selection.run_id = ""
        rest = entry.selection.SerializeToString()
        known = self._read.get(rest)
        if known is not None:
            return replace(known, run_id=entry.run_id)
        entry.selection.run_id = entry.run_id
        said = self._judged(entry)
        if isinstance(said, RunSelection) and len(self._read) < KNOWN_MAX:
            self._read[rest] = said
        return said

    def _judged(self, entry: owners.RunSelectionEntry) -> RunSelection | BrokerError:
        return read_selection(entry, self._tenant_id, RunScope(self._project_id, entry.run_id))


def check_entries(answer: owners.GetProjectAuthorityResponse, run_ids: Sequence[str]) -> None:
    """Check which runs an answer tells about.

    Raises:
        AuthorityResponseInvalidError: it has not exactly one entry for each run asked for, in
            their order. Not retryable.
    """
    if [entry.run_id for entry in answer.selections] != list(run_ids):
        raise AuthorityResponseInvalidError(
            "the owner's answer breaks a rule: one entry for each run asked for, in order"
        )


def read_selection(
    answer: owners.GetRunAuthorityResponse | owners.RunSelectionEntry,
    tenant_id: str,
    scope: RunScope,
) -> RunSelection | BrokerError:
    """Return the checked selection, or the refusal to give to whoever needs it (004-21, 004-22).

    The refusal is one of RunSelectionNotFoundError (unset), RunSelectionInvalidError (malformed, or
    of another tenant, project or run) and ProviderSelectionInvalidError (not exactly one exclusive
    Memory entry with one candidate). It is returned, not raised: permissions are judged first.
    """
    if not answer.HasField("selection"):
        return RunSelectionNotFoundError("the run has no accepted selection")
    said = answer.selection
    try:
        _check_identity(said, tenant_id, scope)
        _check_entries(said)
        memory = _memory(said)
        cap = _prompt_cap(said)
    except (RunSelectionInvalidError, ProviderSelectionInvalidError) as refusal:
        return refusal.with_traceback(None)
    return RunSelection(
        tenant_id=said.tenant_id,
        project_id=said.project_id,
        run_id=said.run_id,
        project_revision=said.project_revision,
        project_configuration_revision=said.project_configuration_revision,
        platform_runtime_revision=said.platform_runtime_revision,
        context_revision=said.context_revision,
        memory=memory,
        max_prompt_tokens=cap,
    )


def _check_identity(said: owners.RunSelection, tenant_id: str, scope: RunScope) -> None:
    _demand(said.tenant_id == tenant_id, "tenant_id must be the caller's")
    _demand(said.project_id == scope.project_id, "project_id must be the one asked for")
    _demand(said.run_id == scope.run_id, "run_id must be the one asked for")
    _demand(said.project_revision >= 1, "project_revision must be at least 1")
    _demand(
        said.project_configuration_revision >= 1,
        "project_configuration_revision must be at least 1",
    )
    _demand(said.platform_runtime_revision >= 1, "platform_runtime_revision must be at least 1")
    _demand(is_label(said.context_revision), "context_revision must be 1-256 printable characters")


def _check_entries(said: owners.RunSelection) -> None:
    for entry in said.providers:
        _demand(int(entry.cardinality) in _CARDINALITIES, "a cardinality must be known")
        _demand(is_label(entry.seam), "a seam must be 1-256 printable characters")
        for candidate in entry.candidates:
            _demand(candidate.seam == entry.seam, "a candidate's seam must be its entry's")


def _memory(said: owners.RunSelection) -> Candidate:
    entries = [entry for entry in said.providers if entry.seam == MEMORY_SEAM]
    candidates = [candidate for entry in entries for candidate in entry.candidates]
    if (
        len(entries) != 1
        or entries[0].cardinality != owners.CARDINALITY_EXCLUSIVE
        or len(candidates) != 1
    ):
        raise ProviderSelectionInvalidError(
            "the run must select exactly one exclusive provider for Memory"
        )
    return _candidate(candidates[0])


def _candidate(said: owners.Candidate) -> Candidate:
    _demand(is_identifier(said.provider_id), "provider_id must be an identifier")
    _demand(_VERSION.match(said.adapter_version) is not None, "adapter_version must be x.y.z")
    _demand(said.options_schema_version >= 1, "options_schema_version must be at least 1")
    _demand(is_label(said.options_revision), "options_revision must be 1-256 printable characters")
    _demand(is_label(said.hosting), "hosting must be 1-256 printable characters")
    _demand(not said.HasField("layer"), "an exclusive candidate has no layer")
    advertised = _capabilities(list(said.advertised_capabilities))
    required = _capabilities(list(said.required_capabilities))
    _demand(bool(advertised), "advertised_capabilities must not be empty")
    _demand(required <= advertised, "required_capabilities must be advertised")
    return Candidate(
        seam=said.seam,
        provider_id=said.provider_id,
        adapter_version=said.adapter_version,
        options_schema_version=said.options_schema_version,
        options_revision=said.options_revision,
        hosting=said.hosting,
        advertised=advertised,
        required=required,
    )


def _capabilities(names: list[str]) -> frozenset[str]:
    _demand(len(names) <= CAPABILITIES_MAX, "there may be 64 capabilities")
    _demand(all(map(is_label, names)), "a capability must be named")
    told = frozenset(names)
    _demand(len(told) == len(names), "a capability may be listed once")
    return told


def _prompt_cap(said: owners.RunSelection) -> int | None:
    limits = said.run_limits
    if not limits.HasField("max_prompt_tokens"):
        return None
    _demand(limits.max_prompt_tokens >= 1, "max_prompt_tokens must be at least 1")
    return limits.max_prompt_tokens


def _demand(holds: bool, rule: str) -> None:
    if not holds:
        raise RunSelectionInvalidError(f"the owner's run selection breaks a rule: {rule}")
