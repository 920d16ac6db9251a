"""The faults that are still to come."""

from __future__ import annotations

from dataclasses import replace

from broker.devstack.cosmos.faults import ANY, Fault


class Script:
    """Faults in the order in which they were given."""

    def __init__(self) -> None:
        """Begins without a fault."""
        self._faults: list[Fault] = []

    def add(self, fault: Fault) -> None:
        """Puts a fault behind those already there."""
        self._faults.append(fault)

    def clear(self) -> None:
        """Drops all faults that have not struck."""
        self._faults.clear()

    def next(self, kind: str) -> Fault | None:
        """Returns the fault that strikes a request of a kind, and counts it."""
        for index, fault in enumerate(self._faults):
            if fault.kind in {ANY, kind}:
                if fault.after:
                    self._faults[index] = replace(fault, after=fault.after - 1)
                    return None
                self._faults[index] = replace(fault, times=fault.times - 1)
                if fault.times == 1:
                    del self._faults[index]
                return fault
        return None
