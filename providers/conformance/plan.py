"""Which laws a backend is judged by, what is left out and why, and how it came out."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from enum import Enum, auto

from providers.capabilities import Capability
from providers.conformance.declaration import Declaration, Sizes
from providers.conformance.law import Law
from providers.conformance.laws import all_laws

_WIDEST = asdict(Sizes())


class Result(Enum):
    """How a law came out."""

    PASSED = auto()
    FAILED = auto()
    NOT_RUN = auto()


@dataclass(frozen=True, slots=True)
class Gap:
    """A law that would apply, and why this backend cannot be judged by it."""

    law: Law
    reason: str


@dataclass(frozen=True, slots=True)
class Plan:
    """The laws to run, the gaps, and the laws about things this sort of store does not have."""

    declaration: Declaration
    laws: tuple[Law, ...]
    gaps: tuple[Gap, ...]
    foreign: tuple[Law, ...]


def plan_for(declaration: Declaration, laws: Iterable[Law] | None = None) -> Plan:
    """Sort the laws for a backend; each one ends up in exactly one place."""
    chosen: list[Law] = []
    gaps: list[Gap] = []
    foreign: list[Law] = []
    for law in all_laws() if laws is None else laws:
        reason = _gap(law, declaration)
        if _is_foreign(law, declaration):
            foreign.append(law)
        elif reason is not None:
            gaps.append(Gap(law, reason))
        else:
            chosen.append(law)
    return Plan(declaration, tuple(chosen), tuple(gaps), tuple(foreign))


Results = Mapping[tuple[str, str], Result]
"""By backend and ``<area>-<law>``; what is missing was not run."""


def law_id(law: Law) -> str:
    """Name a law with its area, as test ids do."""
    return f"{law.area}-{law.name}"


def report(plans: Sequence[Plan], results: Results) -> list[str]:
    """Write backend by capability: FULL, or what is missing, then the reasons for the gaps."""
    width = max(len(each) for each in Capability)
    backends = [plan.declaration.backend for plan in plans]
    columns = [max(len(name), 22) for name in backends]
    lines = [_row("", backends, width, columns)]
    for capability in Capability:
        cells = [_cell(plan, capability, results) for plan in plans]
        lines.append(_row(capability, cells, width, columns))
    for plan in plans:
        lines += _reasons(plan)
    return [line.rstrip() for line in lines]


def _is_foreign(law: Law, declaration: Declaration) -> bool:
    if law.hazard is not None and law.hazard not in declaration.hazards:
        return True
    if law.bounded is not None and law.bounded != (declaration.recall_records_max is not None):
        return True
    return law.needs_gap and not declaration.absent_capabilities


def _gap(law: Law, declaration: Declaration) -> str | None:
    if law.capability not in declaration.capabilities:
        return f"{law.capability}: {declaration.absent_capabilities[law.capability]}"
    missing = sorted(law.facts - declaration.facts)
    if missing:
        return "; ".join(f"{fact}: {declaration.absent_facts[fact]}" for fact in missing)
    return None


def _cell(plan: Plan, capability: Capability, results: Results) -> str:
    if capability in plan.declaration.absent_capabilities:
        return "absent"
    backend = plan.declaration.backend
    laws = [law for law in plan.laws if law.capability is capability]
    gaps = sum(gap.law.capability is capability for gap in plan.gaps)
    found = [results.get((backend, law_id(law)), Result.NOT_RUN) for law in laws]
    if not laws and not gaps:
        return "no laws yet"
    if Result.FAILED in found:
        return f"FAILED {found.count(Result.FAILED)} of {len(laws)}"
    if Result.NOT_RUN in found:
        return f"ran {found.count(Result.PASSED)} of {len(laws)}"
    return f"{len(laws)} passed, gaps {gaps}" if gaps else f"FULL {len(laws)}"


def _reasons(plan: Plan) -> list[str]:
    backend = plan.declaration.backend
    absent = plan.declaration.absent_capabilities
    lines = [f"{backend}: {name} absent: {absent[name]}" for name in sorted(absent)]
    sizes = asdict(plan.declaration.sizes)
    smaller = [f"{name} {most}" for name, most in sizes.items() if most != _WIDEST[name]]
    if smaller:
        lines.append(f"{backend}: one commit holds at most: {', '.join(smaller)}")
    by_reason: dict[str, list[str]] = {}
    for gap in plan.gaps:
        if gap.law.capability not in absent:
            by_reason.setdefault(gap.reason, []).append(law_id(gap.law))
    for reason, names in sorted(by_reason.items()):
        lines.append(f"{backend}: gap ({reason}): {', '.join(names)}")
    return lines


def _row(first: str, cells: Sequence[str], width: int, columns: Sequence[int]) -> str:
    padded = [cell.ljust(column) for cell, column in zip(cells, columns, strict=True)]
    return "  ".join([first.ljust(width), *padded])
