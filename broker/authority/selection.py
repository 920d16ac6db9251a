"""Reads the accepted selection of a run: its identity, its revisions, its one Memory provider."""

import re
from collections.abc import Sequence
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
from providers.capabilities import Capability

MEMORY_SEAM = "Memory"
CAPABILITIES_MAX = 64

KNOWN_MAX: Final = 64
"""So many kinds of selections are known again within one call; further ones are judged anew."""

_CARDINALITIES = frozenset(int(value) for value in owners.Cardinality.values()) - {0}
_KNOWN = frozenset(map(str, Capability))
"""Names that need no look at their form."""
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
            return known._replace(run_id=entry.run_id)
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
        return _checked(said, tenant_id, scope)
    except (RunSelectionInvalidError, ProviderSelectionInvalidError) as refusal:
        return refusal.with_traceback(None)


def _checked(said: owners.RunSelection, tenant_id: str, scope: RunScope) -> RunSelection:
    if said.tenant_id != tenant_id:
        raise _broken("tenant_id must be the caller's")
    if said.project_id != scope.project_id:
        raise _broken("project_id must be the one asked for")
    if said.run_id != scope.run_id:
        raise _broken("run_id must be the one asked for")
    return RunSelection(
        tenant_id=tenant_id,
        project_id=scope.project_id,
        run_id=scope.run_id,
        project_revision=_revision("project_revision", said.project_revision),
        project_configuration_revision=_revision(
            "project_configuration_revision", said.project_configuration_revision
        ),
        platform_runtime_revision=_revision(
            "platform_runtime_revision", said.platform_runtime_revision
        ),
        context_revision=_label("context_revision", said.context_revision),
        memory=_memory(said),
        max_prompt_tokens=_prompt_cap(said),
    )


def _revision(name: str, number: int) -> int:
    if number < 1:
        raise _broken(f"{name} must be at least 1")
    return number


def _label(name: str, text: str) -> str:
    if not is_label(text):
        raise _broken(f"{name} must be 1-256 printable characters")
    return text


def _memory(said: owners.RunSelection) -> Candidate:
    found: list[tuple[int, Sequence[owners.Candidate]]] = []
    for entry in said.providers:
        cardinality, candidates = entry.cardinality, entry.candidates
        if cardinality not in _CARDINALITIES:
            raise _broken("a cardinality must be known")
        seam = _label("a seam", entry.seam)
        for candidate in candidates:
            if candidate.seam != seam:
                raise _broken("a candidate's seam must be its entry's")
        if seam == MEMORY_SEAM:
            found.append((cardinality, candidates))
    match found:
        case [(owners.CARDINALITY_EXCLUSIVE, [chosen])]:
            return _candidate(chosen)
    raise ProviderSelectionInvalidError(
        "the run must select exactly one exclusive provider for Memory"
    )


def _candidate(said: owners.Candidate) -> Candidate:
    provider_id, version = said.provider_id, said.adapter_version
    if not is_identifier(provider_id):
        raise _broken("provider_id must be an identifier")
    if _VERSION.match(version) is None:
        raise _broken("adapter_version must be x.y.z")
    if said.HasField("layer"):
        raise _broken("an exclusive candidate has no layer")
    advertised = _capabilities(said.advertised_capabilities)
    required = _capabilities(said.required_capabilities)
    if not advertised:
        raise _broken("advertised_capabilities must not be empty")
    if not required <= advertised:
        raise _broken("required_capabilities must be advertised")
    return Candidate(
        seam=MEMORY_SEAM,
        provider_id=provider_id,
        adapter_version=version,
        options_schema_version=_revision("options_schema_version", said.options_schema_version),
        options_revision=_label("options_revision", said.options_revision),
        hosting=_label("hosting", said.hosting),
        advertised=advertised,
        required=required,
    )


def _capabilities(names: Sequence[str]) -> frozenset[str]:
    if len(names) > CAPABILITIES_MAX:
        raise _broken("there may be 64 capabilities")
    told = frozenset(names)
    if not told <= _KNOWN and not all(map(is_label, told)):
        raise _broken("a capability must be named")
    if len(told) != len(names):
        raise _broken("a capability may be listed once")
    return told


def _prompt_cap(said: owners.RunSelection) -> int | None:
    limits = said.run_limits
    if not limits.HasField("max_prompt_tokens"):
        return None
    if limits.max_prompt_tokens < 1:
        raise _broken("max_prompt_tokens must be at least 1")
    return limits.max_prompt_tokens


def _broken(rule: str) -> RunSelectionInvalidError:
    return RunSelectionInvalidError(f"the owner's run selection breaks a rule: {rule}")
