"""The manifests fit the schemas, each other, the image and the settings. No cluster took them."""

import re
from pathlib import Path
from typing import Any

import pytest
import trustme
import yaml

from broker.config import Settings
from broker.safety import verify
from broker.supervision.supervisor import CLOSING_S
from providers.registry import adapter
from tests.deploy.files import DEPLOY, MANIFESTS, objects, only, project, runbook, settings, tool
from tests.deploy.test_dockerfile import UID

ALL = [each for name in MANIFESTS for each in objects(name)]
DEPLOYMENT, JOB = only("deployment.yaml"), only("migration-job.yaml")
PODS = {"broker": DEPLOYMENT["spec"]["template"], "migration": JOB["spec"]["template"]}
CONTAINERS = [
    (name, container)
    for name, pod in PODS.items()
    for container in [*pod["spec"].get("initContainers", []), *pod["spec"]["containers"]]
]
(BROKER,) = DEPLOYMENT["spec"]["template"]["spec"]["containers"]


@pytest.mark.parametrize("name", MANIFESTS)
@pytest.mark.parametrize("version", ["1.30.0", "1.37.0"])  # the oldest that will do, the newest
def test_the_schemas_of_kubernetes_accept_it(name: str, version: str) -> None:
    path = DEPLOY / "k8s" / name
    done = tool("kubernetes-validate", "--strict", "--kubernetes-version", version, path)
    assert done.returncode == 0, done.stdout
    assert "INFO" in done.stdout + done.stderr
    assert "WARN" not in done.stdout + done.stderr


def test_no_manifest_names_a_namespace_or_holds_a_secret() -> None:
    assert not any("namespace" in each["metadata"] for each in ALL)
    assert "Secret" not in {each["kind"] for each in ALL}


def test_the_kustomization_lists_everything_but_the_job() -> None:
    file = yaml.safe_load((DEPLOY / "k8s" / "kustomization.yaml").read_text())
    assert sorted([*file["resources"], "migration-job.yaml"]) == MANIFESTS
    assert file["images"] == [{"name": "knowledge-broker", "newTag": project()["version"]}]
    assert {container["image"] for _, container in CONTAINERS} == {
        f"knowledge-broker:{project()['version']}"
    }


# -------------------- pods


@pytest.mark.parametrize("name", PODS)
def test_a_pod_may_do_little(name: str) -> None:
    pod = PODS[name]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert not {"hostNetwork", "hostPID", "hostIPC"} & pod.keys()
    context = pod["securityContext"]
    assert context["runAsNonRoot"] is True
    assert {context[each] for each in ("runAsUser", "runAsGroup", "fsGroup")} == {int(UID)}
    assert context["seccompProfile"] == {"type": "RuntimeDefault"}


@pytest.mark.parametrize(("name", "container"), CONTAINERS)
def test_a_container_may_do_little(name: str, container: dict[str, Any]) -> None:
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"cpu", "memory"} <= container["resources"]["requests"].keys()
    assert "memory" in container["resources"]["limits"]


def test_only_the_job_has_the_address_of_the_owner_of_the_database() -> None:
    def secrets(name: str) -> set[str]:
        volumes = PODS[name]["spec"]["volumes"]
        return {each["secret"]["secretName"] for each in volumes if "secret" in each}

    assert secrets("broker") == {"broker-postgres", "broker-redis", "broker-tls"}
    assert secrets("migration") == {"broker-migration"}
    for name in secrets("broker") | secrets("migration"):
        assert re.search(rf"kubectl create secret \w+ {name} ", runbook())


def test_probes_ask_the_health_port() -> None:
    port = int(settings()["server"]["health_listen"].rpartition(":")[2])
    assert BROKER["livenessProbe"]["grpc"] == {"port": port, "service": "live"}
    assert BROKER["startupProbe"]["grpc"] == {"port": port, "service": "live"}
    assert BROKER["readinessProbe"]["grpc"] == {"port": port}


def test_a_pod_has_time_to_drain() -> None:
    pause = BROKER["lifecycle"]["preStop"]["sleep"]["seconds"]
    drain = settings()["server"]["drain_seconds"]
    grace = PODS["broker"]["spec"]["terminationGracePeriodSeconds"]
    assert pause >= 1
    assert grace >= pause + drain + 2 * CLOSING_S


def test_at_least_two_pods_spread_over_zones_and_nodes() -> None:
    scaler = only("autoscaler.yaml")["spec"]
    assert scaler["minReplicas"] >= 2
    assert "replicas" not in DEPLOYMENT["spec"]
    assert scaler["scaleTargetRef"] == {
        "apiVersion": DEPLOYMENT["apiVersion"],
        "kind": "Deployment",
        "name": DEPLOYMENT["metadata"]["name"],
    }
    spread = PODS["broker"]["spec"]["topologySpreadConstraints"]
    assert {each["topologyKey"] for each in spread} == {
        "topology.kubernetes.io/zone",
        "kubernetes.io/hostname",
    }
    assert only("disruption-budget.yaml")["spec"]["maxUnavailable"] < scaler["minReplicas"]


def test_connections_stay_within_what_the_runbook_says() -> None:
    pods = only("autoscaler.yaml")["spec"]["maxReplicas"]
    surge = DEPLOYMENT["spec"]["strategy"]["rollingUpdate"]["maxSurge"]
    given = settings()
    pools = [each["options"]["pool_size"] for each in given["providers"]]
    own = given["store"]["pool_size"]
    held = (pods + surge) * given["server"]["workers"] * (own + sum(pools) + len(pools))
    text = f"({pods} + {surge}) pods with ({own} + {pools[0]} + 1) each: {held} at most"
    assert text in runbook()
    assert held <= 97


# -------------------- how they belong together


def test_selectors_select_the_pods() -> None:
    broker, migration = (PODS[name]["metadata"]["labels"] for name in ("broker", "migration"))
    assert broker != migration
    spread = PODS["broker"]["spec"]["topologySpreadConstraints"]
    selectors = [each["labelSelector"]["matchLabels"] for each in spread]
    selectors.append(DEPLOYMENT["spec"]["selector"]["matchLabels"])
    selectors.append(only("disruption-budget.yaml")["spec"]["selector"]["matchLabels"])
    selectors += [each["spec"]["selector"] for each in objects("service.yaml")]
    policies = {each["metadata"]["name"]: each["spec"] for each in objects("network-policy.yaml")}
    selectors.append(policies["broker"]["podSelector"]["matchLabels"])
    assert all(selector == broker for selector in selectors)
    assert policies["broker-migration"]["podSelector"]["matchLabels"] == migration


def ports() -> dict[str, int]:
    """The ports that the settings name."""
    server = settings()["server"]
    named = {"grpc": "listen", "health": "health_listen", "metrics": "metrics_listen"}
    return {name: int(server[key].rpartition(":")[2]) for name, key in named.items()}


def test_ports_are_those_of_the_settings() -> None:
    assert {each["name"]: each["containerPort"] for each in BROKER["ports"]} == ports()
    for service in objects("service.yaml"):
        for port in service["spec"]["ports"]:
            assert port["port"] == ports()[port["targetPort"]]
    headless = [each["spec"].get("clusterIP") for each in objects("service.yaml")]
    assert headless == [None, "None"]


def test_the_network_lets_through_what_is_needed_and_nothing_else() -> None:
    policies = {each["metadata"]["name"]: each["spec"] for each in objects("network-policy.yaml")}
    assert all(each["policyTypes"] == ["Ingress", "Egress"] for each in policies.values())
    assert "ingress" not in policies["broker-migration"]
    came = {
        port["port"]: peer["namespaceSelector"]["matchLabels"]
        for rule in policies["broker"]["ingress"]
        for peer in rule["from"]
        for port in rule["ports"]
    }
    monitoring = {"knowledge-broker/monitoring": "true"}
    assert came == {
        ports()["grpc"]: {"knowledge-broker/client": "true"},
        ports()["health"]: monitoring,
        ports()["metrics"]: monitoring,
    }
    goes = {
        name: {port["port"] for rule in policy["egress"] for port in rule["ports"]}
        for name, policy in policies.items()
    }
    assert goes == {
        "broker": {53, 443, 5432, 6380},
        "broker-migration": {53, 5432, 6380},
    }
    for policy in policies.values():
        assert all(rule["to"] and rule["ports"] for rule in policy["egress"])


# -------------------- settings


def files(value: Any) -> set[str]:
    """Every path among the settings."""
    if isinstance(value, dict):
        return set().union(*map(files, value.values())) if value else set()
    if isinstance(value, list):
        return set().union(*map(files, value)) if value else set()
    return {value} if isinstance(value, str) and value.startswith("/") else set()


def test_every_file_of_the_settings_is_mounted() -> None:
    mounts = {each["mountPath"] for each in BROKER["volumeMounts"]}
    named = files(settings()) | files(settings(redis=True)) | {BROKER["args"][-1]}
    assert {str(Path(name).parent) for name in named} <= mounts
    jobs = [container for name, container in CONTAINERS if name == "migration"]
    for container in jobs:
        (variable,) = container["env"]
        assert variable["name"] == "BROKER_MIGRATION_DSN_FILE"
        mounted = {each["mountPath"] for each in container["volumeMounts"]}
        assert str(Path(variable["value"]).parent) in mounted


def test_pods_start_without_the_secret_of_redis_and_no_other() -> None:
    volumes = PODS["broker"]["spec"]["volumes"]
    optional = {
        each["secret"]["secretName"] for each in volumes if each.get("secret", {}).get("optional")
    }
    assert optional == {"broker-redis"}


@pytest.mark.parametrize("redis", [False, True], ids=["as they are", "with the comment"])
def test_the_broker_takes_the_settings(tmp_path: Path, redis: bool) -> None:
    """Loaded and verified as `broker serve` does, with the files that the cluster would mount."""
    given = settings(redis=redis)
    authority = trustme.CA()
    certificate = authority.issue_cert("broker.example")
    trusted = f"sslmode=verify-full&sslrootcert={tmp_path / 'owner-ca.crt'}"
    written = {
        "runtime-dsn": f"postgresql://r:p@db.example:5432/knowledge?{trusted}\n".encode(),
        "tls.crt": b"".join(each.bytes() for each in certificate.cert_chain_pems),
        "tls.key": certificate.private_key_pem.bytes(),
        "owner-ca.crt": authority.cert_pem.bytes(),
        "events-ca.crt": authority.cert_pem.bytes(),
        "redis-ca.crt": authority.cert_pem.bytes(),
        "redis-password": b"a-long-one\n",
    }
    for name, content in written.items():
        (tmp_path / name).write_bytes(content)
    loaded = Settings.model_validate(placed(given, tmp_path))
    verify(loaded, development=False)
    assert len(loaded.providers) == 1 + redis
    for provider in loaded.providers:
        kind = adapter(provider.adapter)
        assert provider.adapter_version == kind.version
        kind.open({**provider.options, "options_revision": provider.options_revision})
    assert "p@db" not in str(given)


def placed(value: Any, folder: Path) -> Any:
    """The settings with each file in another folder."""
    if isinstance(value, dict):
        return {key: placed(each, folder) for key, each in value.items()}
    if isinstance(value, list):
        return [placed(each, folder) for each in value]
    if isinstance(value, str) and value.startswith("/"):
        return str(folder / Path(value).name)
    return value


def test_job_and_settings_name_the_same_resource() -> None:
    (provider,) = settings()["providers"]
    _, init = (container["args"] for name, container in CONTAINERS if name == "migration")
    assert init == [
        "init-resource",
        "--resource-id",
        provider["options"]["resource_id"],
        "--generation",
        str(provider["options"]["generation"]),
        "--if-absent",
    ]
    assert provider["options"]["resource_id"] in runbook()
    _, redis = settings(redis=True)["providers"]
    marker = f"--resource-id {redis['options']['resource_id']} --generation"
    assert marker in runbook()
