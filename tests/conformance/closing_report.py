"""Prints backend by capability when a run that judged laws ends."""

import pytest

from providers.conformance.plan import Result, plan_for, report
from tests.conformance.backends import BACKENDS

PROPERTY = "law"


class ClosingReport:
    """Gathers how each law came out, also from the workers of a distributed run."""

    def __init__(self) -> None:
        self._results: dict[tuple[str, str], Result] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        judged = dict(report.user_properties).get(PROPERTY)
        if not isinstance(judged, tuple | list):
            return
        backend, law = judged
        if report.failed:
            self._results[backend, law] = Result.FAILED
        elif report.when == "call" and report.passed:
            self._results.setdefault((backend, law), Result.PASSED)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self._results:
            return
        plans = [plan_for(backend.declaration) for backend in BACKENDS.values()]
        terminalreporter.section("conformance: backend by capability")
        for line in report(plans, self._results):
            terminalreporter.write_line(line)
