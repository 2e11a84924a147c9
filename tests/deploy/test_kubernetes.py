from __future__ import annotations

from typing import Any

import kubernetes_validate
import pytest
from django.conf import settings
from django.core.management import get_commands, load_command_class
from kubernetes_validate import utils

from config.supervisor.background import CeleryWorker, Exporter, Shipper
from config.version import VERSION
from tests.deploy.kubernetes import BASE, FOLDER, OVERLAYS, Resource, build, containers, one, pod
from tests.live.service import ROOT

FOLDERS = [BASE, *OVERLAYS]
NAMES = [folder.name for folder in FOLDERS]
# Kubernetes is supported for three minor versions; the manifests keep to what a fourth one knows.
KUBERNETES = sorted(set(utils.all_versions()), key=lambda name: [int(part) for part in name.split(".")])[-4:]
_ID = 10001


_WITH_PODS = [
    pytest.param(resource, id=f"{folder.name}-{resource['metadata']['name']}")
    for folder in FOLDERS
    for resource in build(folder)
    if pod(resource)
]


def _configuration(resources: list[Resource]) -> dict[str, str]:
    data: dict[str, str] = one(resources, "ConfigMap", "prompt-gateway")["data"]
    return data


def test_manifests__every_file__is_part_of_an_overlay() -> None:
    assert [folder.name for folder in OVERLAYS] == ["large", "small"]
    text = "".join(file.read_text(encoding="utf-8") for file in FOLDER.rglob("kustomization.yaml"))
    others = {file.name for file in FOLDER.rglob("*.yaml")} - {"kustomization.yaml"}
    assert {name for name in others if f"  - {name}\n" not in text} == set()


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("folder", FOLDERS, ids=NAMES)
def test_manifests__against_the_schemas_of_kubernetes__are_strictly_valid(folder: Any, version: str) -> None:
    for resource in build(folder):
        kubernetes_validate.validate(resource, version, strict=True)


def test_manifests__with_a_misspelt_field__are_not_valid() -> None:
    web = one(build(BASE), "StatefulSet", "prompt-gateway-web")
    containers(web)[0]["prots"] = containers(web)[0].pop("ports")

    with pytest.raises(kubernetes_validate.ValidationError):
        kubernetes_validate.validate(web, KUBERNETES[-1], strict=True)


@pytest.mark.parametrize("resource", _WITH_PODS)
def test_pod__security__needs_no_right_and_no_place_to_write_but_its_volumes(resource: Resource) -> None:
    specification, (container,) = pod(resource), containers(resource)

    assert specification["automountServiceAccountToken"] is False
    assert specification["securityContext"]["runAsNonRoot"] is True
    assert specification["securityContext"]["runAsUser"] == specification["securityContext"]["fsGroup"] == _ID
    assert specification["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert f"--uid {_ID}" in (ROOT / "Dockerfile").read_text(encoding="utf-8")


@pytest.mark.parametrize("resource", _WITH_PODS)
def test_pod__mounts__are_the_image_s_folder_of_data_and_that_of_the_secrets(resource: Resource) -> None:
    mounts = {mount["name"]: mount["mountPath"] for mount in containers(resource)[0]["volumeMounts"]}
    made = [volume["name"] for volume in pod(resource)["volumes"]]
    claimed = [claim["metadata"]["name"] for claim in resource["spec"].get("volumeClaimTemplates", [])]

    assert sorted(made + claimed) == sorted(mounts)
    assert f"VAR_DIR={mounts['var']}\n" in (ROOT / "Dockerfile").read_text(encoding="utf-8")
    files = {
        name.removesuffix("_FILE"): path for name, path in _configuration(build(BASE)).items() if name.endswith("_FILE")
    }
    assert files == {name: f"{mounts['secrets']}/{name}" for name in files}
    assert {"DATABASE_URL", "REDIS_URL", "CLICKHOUSE_URL", "SECRET_KEY", "ENCRYPTION_KEYS"} == files.keys()


@pytest.mark.parametrize("resource", _WITH_PODS)
def test_pod__command__is_one_of_manage_py_that_takes_its_options(resource: Resource) -> None:
    program, script, command, *options = containers(resource)[0]["command"]

    assert (program, script) == ("python", "manage.py")
    parser = load_command_class(get_commands()[command], command).create_parser("manage.py", command)
    chosen = parser.parse_args(options)
    if command == "serve":
        assert chosen.no_migrate
    else:
        assert command == "migrate_all"


def test_hosts__background_tasks__run_on_the_workers_alone() -> None:
    resources = build(BASE)
    (web,), (worker,) = (
        containers(one(resources, "StatefulSet", f"prompt-gateway-{name}")) for name in ("web", "worker")
    )

    assert web["command"][3:5] == ["--without", "celery"]
    assert "--without" not in worker["command"]


@pytest.mark.parametrize("folder", FOLDERS, ids=NAMES)
def test_configuration__variables__are_documented(folder: Any) -> None:
    documented = (ROOT / "docs" / "operations.md").read_text(encoding="utf-8")
    named = {name.removesuffix("_FILE") for name in _configuration(build(folder))}
    named |= {
        item["name"] for resource in build(folder) for made in containers(resource) for item in made.get("env", [])
    }

    assert {name for name in named if f"`{name}`" not in documented} == set()


@pytest.mark.parametrize("name", ["web", "worker"])
def test_host__ports_and_probes__are_those_of_the_code(name: str) -> None:
    resources = build(BASE)
    host, configuration = one(resources, "StatefulSet", f"prompt-gateway-{name}"), _configuration(resources)
    (container,) = containers(host)
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    dockerfile = (ROOT / "Dockerfile").read_text(encoding="utf-8")

    assert f"PORT={ports['http']} " in dockerfile and f"EXPOSE {ports['http']}\n" in dockerfile
    assert str(ports["metrics"]) == configuration["METRICS_PORT"]
    assert host["spec"]["template"]["metadata"]["annotations"]["prometheus.io/port"] == configuration["METRICS_PORT"]
    paths = {probe: container[probe]["httpGet"] for probe in ("startupProbe", "livenessProbe", "readinessProbe")}
    assert [at["path"] for at in paths.values()] == ["/healthz", "/healthz", "/readyz"]
    assert {at["port"] for at in paths.values()} == {"http"}
    service = one(resources, "Service", host["spec"]["serviceName"])
    assert service["spec"]["selector"] == host["spec"]["selector"]["matchLabels"]
    assert [port["port"] for port in service["spec"]["ports"]] == [ports["metrics"]]


@pytest.mark.parametrize("name", ["web", "worker"])
def test_host__times__leave_what_the_code_takes_to_stop(name: str) -> None:
    resources = build(BASE)
    host, configuration = one(resources, "StatefulSet", f"prompt-gateway-{name}"), _configuration(resources)
    ready = containers(host)[0]["readinessProbe"]
    prestop, drain = int(configuration["PRESTOP_SECONDS"]), int(configuration["DRAIN_SECONDS"])
    # A child may use up its time for what it has left to do, and once more to end.
    after = 2 * (Shipper.stop_seconds + Exporter.stop_seconds) + CeleryWorker.stop_seconds

    assert prestop > ready["periodSeconds"] * ready["failureThreshold"] + ready["timeoutSeconds"]
    assert pod(host)["terminationGracePeriodSeconds"] > prestop + drain + 5 + after


@pytest.mark.parametrize("folder", OVERLAYS, ids=[folder.name for folder in OVERLAYS])
def test_overlay__names_that_point_at_each_other__are_there(folder: Any) -> None:
    resources = build(folder)
    web = one(resources, "StatefulSet", "prompt-gateway-web")
    scaler = one(resources, "HorizontalPodAutoscaler", "prompt-gateway-web")["spec"]
    (rule,) = one(resources, "Ingress", "prompt-gateway")["spec"]["rules"]
    (path,) = rule["http"]["paths"]

    assert scaler["scaleTargetRef"]["name"] == web["metadata"]["name"]
    assert "replicas" not in web["spec"]
    for name in ("prompt-gateway-web", "prompt-gateway-worker"):
        budget = one(resources, "PodDisruptionBudget", name)["spec"]
        assert budget["selector"] == one(resources, "StatefulSet", name)["spec"]["selector"]
    assert one(resources, "Service", path["backend"]["service"]["name"])["spec"]["ports"][0]["name"] == "http"
    assert _configuration(resources)["ALLOWED_HOSTS"] == rule["host"]
    assert all(made["image"].endswith(f":{VERSION}") for resource in resources for made in containers(resource))
    assert {resource["metadata"]["namespace"] for resource in resources} == {"prompt-gateway"}
    assert {constraint["topologyKey"] for constraint in pod(web)["topologySpreadConstraints"]} >= {
        "kubernetes.io/hostname"
    }


def test_ingress__streams_and_large_bodies__pass() -> None:
    (small,) = (folder for folder in OVERLAYS if folder.name == "small")
    annotations = one(build(small), "Ingress", "prompt-gateway")["metadata"]["annotations"]
    chosen = {name.rpartition("/")[2]: value for name, value in annotations.items()}

    assert chosen["proxy-buffering"] == chosen["proxy-request-buffering"] == "off"
    assert int(chosen["proxy-read-timeout"]) > settings.UPSTREAM_TOTAL_SECONDS
    assert chosen["proxy-body-size"] == f"{settings.GATEWAY_FILE_BYTES >> 20}m"


def test_autoscaler__metric__is_one_that_hosts_have_and_the_adapter_hands_on() -> None:
    (first, _) = one(build(BASE), "HorizontalPodAutoscaler", "prompt-gateway-web")["spec"]["metrics"]
    name = first["pods"]["metric"]["name"]
    adapter = (ROOT / "deploy" / "monitoring" / "prometheus-adapter.yaml").read_text(encoding="utf-8")

    assert f"| `{name}` | gauge |" in (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    assert f"seriesQuery: {name}{{" in adapter


def test_network__ports__are_those_of_the_pods() -> None:
    policy = one(build(BASE), "NetworkPolicy", "prompt-gateway")["spec"]

    assert policy["policyTypes"] == ["Ingress", "Egress"]
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == {"http", "metrics"}
    assert {port["port"] for rule in policy["egress"] for port in rule["ports"]} >= {
        *(53, 443, 5432, 6379, 9000, 9440),
        settings.EMAIL_PORT,
    }
