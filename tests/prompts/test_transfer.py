from __future__ import annotations

import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from rest_framework.test import APIClient

from core.models import Project
from core.roles import Role
from prompts.labels import set_label
from prompts.models import PromptActivation, PromptConfig, PromptLabel, PromptLabelMove, PromptVersion
from prompts.services import activate_version
from prompts.transfer import export_prompts
from tests.factories.core import client_of, make_project, make_staff
from tests.factories.prompts import make_config, make_version
from tests.prompts.paths import BASE, config_path
from tests.tables.cases import tabled

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"z": 1, "a": [None, 1.5, "é"]}}}]


@pytest.fixture
def config(project: Project) -> PromptConfig:
    config = make_config(project, "greeter")
    make_version(config, "Hello {{ name }}\n", variables=[{"name": "name", "type": "string", "required": True}])
    second = make_version(
        config,
        "Grüße",
        model="gpt-4o",
        temperature=1,
        max_tokens=5,
        tools=TOOLS,
        response_format={"type": "json_object"},
        commit_message="German",
    )
    make_version(config, "Hello {{ name }}\n", variables=[{"name": "name", "type": "string", "required": True}])
    activate_version(project_id=project.pk, config_id=config.pk, version_id=second.pk, actor="ada")
    config.refresh_from_db()
    return config


def comparable(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Leaves out actors and times, which an import does not restore."""
    configs = json.loads(json.dumps(document["configs"]))
    for config in configs:
        for version in config["versions"]:
            del version["created_by"], version["created_at"]
    return configs  # type: ignore[no-any-return]  # decoded just now


def test_export__config__all_versions_and_the_active_marker(api: APIClient, config: PromptConfig) -> None:
    make_config(config.project, "empty")
    document = api.get(f"{BASE}/export").json()
    assert (document["format"], document["format_version"]) == ("prompt-gateway/prompts", 1)
    assert [(c["name"], c["active_version_number"]) for c in document["configs"]] == [("empty", None), ("greeter", 2)]
    first, second, third = document["configs"][1]["versions"]
    assert (first["version_number"], first["system_prompt"]) == (1, "Hello {{ name }}\n")
    assert {name: second[name] for name in ("model", "temperature", "max_tokens", "commit_message")} == {
        "model": "gpt-4o",
        "temperature": 1.0,
        "max_tokens": 5,
        "commit_message": "German",
    }
    assert str(second["tools"]) == str(TOOLS)
    assert third["system_prompt"] == first["system_prompt"]
    alone = api.get(config_path(config.pk, "export")).json()
    assert [c["name"] for c in alone["configs"]] == ["greeter"]


def test_import__into_an_empty_project__the_same_prompts(api: APIClient, config: PromptConfig) -> None:
    document = api.get(f"{BASE}/export").json()
    target = make_project()
    response = client_of(target).post(f"{BASE}/import", document)
    assert response.status_code == 200, response.content
    assert response.json() == {
        "dry_run": False,
        "configs_created": 1,
        "versions_added": 3,
        "versions_skipped": 0,
        "labels_added": 0,
        "configs": [
            {
                "name": "greeter",
                "created": True,
                "versions_added": [1, 2, 3],
                "versions_skipped": [],
                "labels_added": [],
            }
        ],
    }
    assert comparable(export_prompts(target.pk)) == comparable(document)
    latest = PromptActivation.objects.filter(config__project=target).latest("id")
    assert (latest.kind, latest.reason) == ("activated", "active in the import")
    assert latest.actor.startswith("key:")


def test_import__again__changes_nothing(api: APIClient, config: PromptConfig) -> None:
    document = api.get(f"{BASE}/export").json()
    before = (PromptVersion.objects.count(), PromptActivation.objects.count())
    for _ in range(2):
        body = api.post(f"{BASE}/import", document).json()
        assert (body["configs_created"], body["versions_added"], body["versions_skipped"]) == (0, 0, 3)
    assert (PromptVersion.objects.count(), PromptActivation.objects.count()) == before
    assert comparable(export_prompts(config.project_id)) == comparable(document)


def test_import__existing_config__adds_and_never_overwrites(api: APIClient, config: PromptConfig) -> None:
    document = api.get(f"{BASE}/export").json()
    target = make_project()
    existing = make_config(target, "greeter")
    make_version(existing, "Mine")
    make_version(existing, "Grüße", model="gpt-4o", temperature=1, max_tokens=5, tools=TOOLS,
                 response_format={"type": "json_object"}, commit_message="another message")  # fmt: skip
    document["configs"][0]["description"] = "Theirs"
    body = client_of(target).post(f"{BASE}/import", document).json()
    assert body["configs"][0]["versions_added"] == [1, 3]
    assert body["configs"][0]["versions_skipped"] == [2]
    existing.refresh_from_db()
    assert existing.active_version is not None
    assert (existing.description, existing.active_version.system_prompt, existing.last_version_number) == (
        "",
        "Mine",
        4,
    )


def test_import__dry_run__says_what_would_happen_and_changes_nothing(api: APIClient, config: PromptConfig) -> None:
    document = api.get(f"{BASE}/export").json()
    target = make_project()
    body = client_of(target).post(f"{BASE}/import", {**document, "dry_run": True}).json()
    assert (body["dry_run"], body["configs_created"], body["versions_added"]) == (True, 1, 3)
    assert not PromptConfig.objects.for_project(target.pk).exists()


def document_with(version: dict[str, Any] | None = None, **config: Any) -> dict[str, Any]:
    versions = [{"version_number": 1, "system_prompt": "x", **(version or {})}]
    configs = [{"name": "a", "versions": versions, **config}]
    return {"format": "prompt-gateway/prompts", "format_version": 1, "configs": configs}


@tabled
def test_import__bad_document__400_naming_the_place_and_nothing_made(api: APIClient, document: Any, field: str) -> None:
    response = api.post(f"{BASE}/import", document)
    assert response.status_code == 400, response.content
    assert field in response.json()["error"]["details"]
    assert not PromptConfig.objects.exists()


def labelled(config: PromptConfig, name: str, number: int, *, is_protected: bool = False) -> None:
    set_label(
        project_id=config.project_id,
        config_id=config.pk,
        name=name,
        number=number,
        actor="ada",
        is_administrator=True,
        is_protected=is_protected,
    )


def labels_of(project: Project) -> list[tuple[str, str, bool]]:
    labels = PromptLabel.objects.filter(config__project=project).order_by("name")
    return [(label.name, label.version.system_prompt, label.is_protected) for label in labels.select_related("version")]


def editor_of(project: Project) -> APIClient:
    editor = APIClient(headers={"X-Project-Id": str(project.pk)})
    editor.force_login(make_staff(Role.EDITOR, project))
    return editor


def test_import__labels_into_an_empty_project__are_on_the_same_versions(api: APIClient, config: PromptConfig) -> None:
    labelled(config, "production", 2, is_protected=True)
    labelled(config, "staging", 3)
    document, target = api.get(f"{BASE}/export").json(), make_project()
    assert document["configs"][0]["labels"] == [
        {"name": "production", "version_number": 2, "is_protected": True},
        {"name": "staging", "version_number": 3, "is_protected": False},
    ]
    planned = client_of(target).post(f"{BASE}/import", {**document, "dry_run": True}).json()
    assert planned["labels_added"] == 2
    assert not labels_of(target)
    body = client_of(target).post(f"{BASE}/import", document).json()
    assert (body["labels_added"], body["configs"][0]["labels_added"]) == (2, ["production", "staging"])
    assert comparable(export_prompts(target.pk)) == comparable(document)
    moves = PromptLabelMove.objects.filter(config__project=target)
    assert {(move.label, move.from_version, move.reason) for move in moves} == {
        ("production", None, "label of the import"),
        ("staging", None, "label of the import"),
    }
    assert client_of(target).post(f"{BASE}/import", document).json()["labels_added"] == 0
    assert moves.count() == 2


def test_import__existing_config__labels_that_are_there_stay_and_others_are_added(
    api: APIClient, config: PromptConfig
) -> None:
    labelled(config, "production", 2)
    labelled(config, "staging", 2)
    document, target = api.get(f"{BASE}/export").json(), make_project()
    existing = make_config(target, "greeter")
    for text in ("Mine", "Other"):
        make_version(existing, text)
    make_version(existing, "Grüße", model="gpt-4o", temperature=1, max_tokens=5, tools=TOOLS,
                 response_format={"type": "json_object"})  # fmt: skip
    labelled(existing, "production", 1, is_protected=True)
    # An editor may do this: the protected label is not touched.
    body = editor_of(target).post(f"{BASE}/import", document, format="json").json()
    assert body["configs"][0]["versions_skipped"] == [2]
    assert body["configs"][0]["labels_added"] == ["staging"]
    assert labels_of(target) == [("production", "Mine", True), ("staging", "Grüße", False)]


@pytest.mark.parametrize("dry_run", [True, False])
def test_import__protected_label_by_an_editor__403_and_nothing_made(
    api: APIClient, config: PromptConfig, dry_run: bool
) -> None:
    labelled(config, "production", 2, is_protected=True)
    document, target = api.get(f"{BASE}/export").json(), make_project()
    editor = editor_of(target)
    response = editor.post(f"{BASE}/import", {**document, "dry_run": dry_run}, format="json")
    assert (response.status_code, response.json()["error"]["code"]) == (403, "prompt_label_protected")
    assert not PromptConfig.objects.for_project(target.pk).exists()
    document["configs"][0]["labels"][0]["is_protected"] = False
    assert editor.post(f"{BASE}/import", document, format="json").status_code == 200
    assert labels_of(target) == [("production", "Grüße", False)]


def test_import__document_without_labels__as_before(api: APIClient, config: PromptConfig) -> None:
    labelled(config, "production", 2)
    document, target = api.get(f"{BASE}/export").json(), make_project()
    del document["configs"][0]["labels"]
    assert client_of(target).post(f"{BASE}/import", document).json()["versions_added"] == 3
    assert not labels_of(target)


def test_import__prompt_that_includes_one_by_label__finds_the_label_of_the_document(api: APIClient) -> None:
    style = {"name": "style", "versions": [{"version_number": 1, "system_prompt": "Kind."}]}
    style["labels"] = [{"name": "production", "version_number": 1}]
    reply = document_with({"system_prompt": None, "messages": [{"prompt": "style@production"}]})
    reply["configs"].append(style)
    assert api.post(f"{BASE}/import", reply).status_code == 200


def test_import__name_refused_late__nothing_made(api: APIClient) -> None:
    document = document_with()
    document["configs"].append({"name": "b\u202e", "versions": []})
    response = api.post(f"{BASE}/import", document)
    assert (response.status_code, list(response.json()["error"]["details"])) == (400, ["name"])
    assert not PromptConfig.objects.exists()


def run(*command: str) -> str:
    out = io.StringIO()
    call_command(*command, stdout=out)
    return out.getvalue()


def test_commands__export_to_a_file_and_import__the_same_prompts(config: PromptConfig, tmp_path: Path) -> None:
    file, target = tmp_path / "prompts.json", make_project("target")
    assert run("export_prompts", "--project", str(config.project_id), "--output", str(file)) == ""
    document = json.loads(file.read_text(encoding="utf-8"))

    planned = run("import_prompts", str(file), "--project", "target", "--dry-run")
    assert planned == "greeter: new config, 3 versions added, 0 there already\nDry run: nothing was changed.\n"
    assert not PromptConfig.objects.for_project(target.pk).exists()

    labelled(config, "production", 2, is_protected=True)
    run("export_prompts", "--project", str(config.project_id), "--output", str(file))
    document = json.loads(file.read_text(encoding="utf-8"))
    added = planned.splitlines()[0] + ", labels added: production\n"
    assert run("import_prompts", str(file), "--project", "target") == added
    assert comparable(export_prompts(target.pk)) == comparable(document)
    assert "0 versions added, 3 there" in run("import_prompts", str(file), "--project", "target")
    assert PromptVersion.objects.filter(config__project=target).values_list(
        "created_by", flat=True
    ).distinct().get() == ("command:import_prompts")


def test_commands__one_config_over_standard_streams(config: PromptConfig, monkeypatch: pytest.MonkeyPatch) -> None:
    make_config(config.project, "other", versions=1)
    make_project("target")
    document = run("export_prompts", "--project", config.project.name, "--config", "greeter")
    assert [item["name"] for item in json.loads(document)["configs"]] == ["greeter"]
    monkeypatch.setattr(sys, "stdin", io.StringIO(document))
    assert "3 versions added" in run("import_prompts", "-", "--project", "target")


@pytest.mark.django_db
@tabled
def test_commands__bad_argument__clear_line(tmp_path: Path, command: list[str], complaint: str) -> None:
    make_project("shop")
    files = {
        "bad": "{",
        "list": "[]",
        "version": json.dumps(document_with({"system_prompt": ""})),
        "name": json.dumps(document_with(name="a\nb")),
    }
    for name, content in files.items():
        (tmp_path / f"{name}.json").write_text(content)
    with pytest.raises(CommandError, match=complaint):
        run(*[part.format(folder=tmp_path) for part in command])
    assert not PromptConfig.objects.exists()


def test_dumpdata_and_loaddata__prompts__come_back_as_they_were(config: PromptConfig, tmp_path: Path) -> None:
    before = comparable(export_prompts(config.project_id))
    file = tmp_path / "dump.json"
    call_command("dumpdata", "core.project", "prompts", output=str(file), verbosity=0)
    config.project.delete()
    assert not PromptVersion.objects.exists()
    call_command("loaddata", str(file), verbosity=0)
    assert comparable(export_prompts(config.project_id)) == before
