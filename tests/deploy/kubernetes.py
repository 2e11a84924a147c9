"""What `kubectl kustomize` makes of an overlay, as far as ours go: resources, images, namespace, patches.

No package index has Kustomize. An overlay that uses more is refused, so that nothing stays unchecked.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import jsonpatch
import yaml

from tests.live.service import ROOT

FOLDER = ROOT / "deploy" / "kubernetes"
BASE = FOLDER / "base"
OVERLAYS = sorted(path.parent for path in FOLDER.glob("overlays/*/kustomization.yaml"))
_KNOWN = {"apiVersion", "kind", "namespace", "resources", "images", "patches"}

Resource = dict[str, Any]


def build(folder: Path) -> list[Resource]:
    (kustomization,) = _documents((folder / "kustomization.yaml").read_text(encoding="utf-8"))
    assert kustomization.keys() <= _KNOWN, f"{folder.name} uses {kustomization.keys() - _KNOWN}"
    resources = [made for name in kustomization["resources"] for made in _resources(folder / name)]
    for patch in kustomization.get("patches", []):
        _patch(resources, patch)
    for resource in resources:
        if namespace := kustomization.get("namespace"):
            resource["metadata"]["namespace"] = namespace
        for container in containers(resource):
            _rename(container, kustomization.get("images", []))
    return resources


def one(resources: list[Resource], kind: str, name: str) -> Resource:
    (found,) = (made for made in resources if (made["kind"], made["metadata"]["name"]) == (kind, name))
    return found


def pod(resource: Resource) -> dict[str, Any]:
    specification: dict[str, Any] = resource.get("spec", {}).get("template", {}).get("spec", {})
    return specification


def containers(resource: Resource) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pod(resource).get("containers", [])
    return found


def _resources(path: Path) -> list[Resource]:
    return build(path) if path.is_dir() else _documents(path.read_text(encoding="utf-8"))


def _documents(text: str) -> list[Any]:
    return list(yaml.load_all(text, Loader=StrictLoader))


def _patch(resources: list[Resource], patch: dict[str, Any]) -> None:
    assert patch.keys() == {"target", "patch"}
    target = one(resources, **patch["target"])
    (changes,) = _documents(patch["patch"])
    resources[resources.index(target)] = jsonpatch.apply_patch(target, changes)


def _rename(container: dict[str, Any], images: list[dict[str, str]]) -> None:
    for image in images:
        if container["image"] == image["name"]:
            container["image"] = f"{image['newName']}:{image['newTag']}"


class StrictLoader(yaml.SafeLoader):
    """Refuses repeated keys of a mapping, as Kubernetes' strict decoding does."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        keys = [self.construct_object(key, deep=True) for key, _ in node.value]
        assert len(keys) == len(set(keys)), f"a key stands twice: {node.start_mark}"
        return super().construct_mapping(node, deep)
