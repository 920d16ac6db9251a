"""The alerts speak of what the code measures, and the runbook of every alert."""

import inspect
import re
from itertools import chain
from typing import Any

import pytest
import yaml
from grpc import StatusCode
from prometheus_client import GCCollector, PlatformCollector, ProcessCollector

from broker.domain.delivery import DeliveryCode
from broker.domain.reasons import Reason
from broker.telemetry.metrics import Metrics
from providers import errors
from providers.errors import ProviderError
from providers.interface import IMemoryProvider
from tests.deploy.files import DEPLOY, runbook

RULES: list[dict[str, Any]] = [
    rule
    for group in yaml.safe_load((DEPLOY / "alerts.yaml").read_text())["groups"]
    for rule in group["rules"]
]
NAMES = [rule["alert"] for rule in RULES]
TARGET = {"job", "instance"}
LANGUAGE = {
    *("sum", "max", "by", "rate", "increase", "histogram_quantile", "absent"),
    *("or", "unless", "offset", "le"),
}
SELECTOR = re.compile(r"([a-z_]+)\{([^}]*)\}")
MATCHER = re.compile(r'([a-z_]+)(=~|=)"([^"]*)"')
OUTCOMES = {"ok", "cancelled"}


def samples() -> dict[str, set[str]]:
    """The labels of every sample, by its name."""
    metrics = Metrics()
    for collector in (ProcessCollector, PlatformCollector, GCCollector):
        collector(registry=metrics.registry)
    metrics.watch_admission(lambda: 0, lambda: 0)
    metrics.call_started()
    metrics.call_finished("m", "OK", "", 0.1)
    metrics.admission_refused("queue")
    metrics.owner_call("m", "ok", 0.1)
    metrics.provider_call("p", "load", "ok", 0.1)
    metrics.delivery("delivered", 0.1)
    found: dict[str, set[str]] = {"up": set()}
    for sample in chain.from_iterable(each.samples for each in metrics.registry.collect()):
        found.setdefault(sample.name, set()).update(sample.labels)
    return found


SAMPLES = samples()
PROVIDER_ERRORS = {
    name
    for name, kind in inspect.getmembers(errors, inspect.isclass)
    if issubclass(kind, ProviderError)
}
OPERATIONS = IMemoryProvider.__abstractmethods__
VALUES = {
    "code": {code.name for code in StatusCode},
    "reason": {reason.value for reason in Reason},
    "limit": {"queue", "caller"},
    "operation": OPERATIONS,
    "job": {"knowledge-broker"},
}


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_speaks_of_what_there_is(rule: dict[str, Any]) -> None:
    expression = rule["expr"]
    for name, inside in SELECTOR.findall(expression):
        for label, _, value in MATCHER.findall(inside):
            assert label in SAMPLES[name] | TARGET
            known = VALUES.get(label) or outcomes(name)
            assert set(value.split("|")) <= known
    plain = SELECTOR.sub(r"\1", expression)
    named = re.sub(r"\[\w+\]|offset \w+|by \([a-z_, ]*\)", "", plain)
    words = set(re.findall(r"[a-z_]{2,}", named)) - LANGUAGE
    assert words
    assert words <= SAMPLES.keys()


def outcomes(name: str) -> set[str]:
    """The outcomes that a histogram may tell."""
    if "delivery" in name:
        return {code.value for code in DeliveryCode}
    reasons = {reason.value for reason in Reason}
    return OUTCOMES | (reasons if "owner" in name else PROVIDER_ERRORS)


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_groups_and_tells_by_labels_that_there_are(rule: dict[str, Any]) -> None:
    groups = re.findall(r"by \(([a-z_, ]*)\)", rule["expr"])
    named = {label for group in groups for label in group.split(", ")}
    used = [labels for name, labels in SAMPLES.items() if name in rule["expr"]]
    assert named <= set().union(*used) | TARGET
    told = set(re.findall(r"\$labels\.([a-z_]+)", rule["annotations"]["summary"]))
    grouped = named or TARGET
    assert told <= grouped


@pytest.mark.parametrize("rule", RULES, ids=NAMES)
def test_a_rule_is_complete(rule: dict[str, Any]) -> None:
    assert rule.keys() <= {"alert", "expr", "for", "labels", "annotations"}
    assert rule["labels"]["severity"] in {"critical", "warning", "info"}
    assert rule["annotations"].keys() == {"summary", "runbook"}
    assert rule["annotations"]["runbook"] == f"deploy/runbook.md#{rule['alert'].lower()}"


def test_the_runbook_explains_every_alert_and_no_other() -> None:
    assert len(NAMES) == len(set(NAMES))
    assert re.findall(r"^### (Broker\w+)$", runbook(), re.MULTILINE) == NAMES
