from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from rest_framework.test import APIClient

from core.audit.entries import write
from core.audit.recording import recording
from core.models import AuditEntry, Membership, Project
from core.roles import Role
from tests.factories.core import client_of, make_project, make_staff

pytestmark = pytest.mark.django_db

AUDIT = "/api/llm/audit"
SECRET = "sk-secret-of-a-provider-0123456789"


@pytest.fixture
def api(project: Project) -> APIClient:
    return client_of(project, name="robot")


def _entries(api: APIClient, **query: Any) -> list[dict[str, Any]]:
    answer = api.get(AUDIT, query)
    assert answer.status_code == 200, answer.json()
    results: list[dict[str, Any]] = answer.json()["results"]
    return results


def test_api__settings_changed_by_a_key__one_entry_with_before_and_after(api: APIClient) -> None:
    answer = api.put("/api/llm/settings", {"retry_max_attempts": 3}, format="json")

    [entry] = _entries(api)
    assert (entry["actor_kind"], entry["actor_name"], entry["via"]) == ("key", "robot", "api")
    assert (entry["operation"], entry["object_kind"], entry["action"]) == ("putSettings", "settings", "changed")
    assert entry["changes"] == {"retry_max_attempts": [2, 3]}
    assert entry["request_id"] == answer.headers["x-request-id"]
    api.put("/api/llm/settings", {"retry_max_attempts": 5}, format="json")
    assert _entries(api)[0]["changes"] == {"retry_max_attempts": [3, 5]}
    assert _entries(api)[0]["summary"].endswith("changed: retry max attempts")


def test_api__nothing_changed_and_refused__no_entry(api: APIClient) -> None:
    api.put("/api/llm/settings", {"retry_max_attempts": 3}, format="json")
    before = len(_entries(api))

    assert api.put("/api/llm/settings", {"retry_max_attempts": 3}, format="json").status_code == 200
    assert api.put("/api/llm/settings", {"retry_max_attempts": 300}, format="json").status_code == 400

    assert len(_entries(api)) == before


def test_api__provider_key_added_and_rotated__says_so_without_the_key(api: APIClient) -> None:
    body = {"provider": "openai", "api_key": SECRET}
    assert api.post("/api/llm/integrations", body, format="json").status_code == 201
    change = {"api_key": SECRET + "-new"}
    assert api.put("/api/llm/integrations/openai", change, format="json").status_code == 200

    rotated, added = _entries(api)
    assert (added["object_kind"], added["object_label"], added["action"]) == ("provider key", "openai", "created")
    assert added["changes"]["encrypted_secret"] == [None, "set"]
    assert rotated["changes"] == {"encrypted_secret": ["set", "set anew"]}
    stored = json.dumps(list(AuditEntry.objects.values("summary", "changes")))
    assert SECRET not in stored
    assert "gAAAA" not in stored


def test_api__key_issued_and_revoked__both_named_and_the_key_is_in_neither(api: APIClient) -> None:
    issued = api.post("/api/llm/keys", {"name": "shop", "scopes": ["gateway"]}, format="json").json()
    assert api.delete(f"/api/llm/keys/{issued['id']}").status_code == 204

    revoked, made = _entries(api)
    assert (made["object_kind"], made["object_label"], made["action"]) == ("API key", "shop", "created")
    assert (revoked["operation"], list(revoked["changes"])) == ("revokeApiKey", ["revoked_at"])
    assert issued["key"] not in json.dumps([made, revoked])


def test_api__session_of_a_person__is_the_actor_by_name(project: Project, api: APIClient) -> None:
    ann = make_staff(Role.ADMINISTRATOR, project, name="ann")
    make_staff(name="bob")
    client = APIClient()
    client.force_login(ann)

    body = {"username": "bob", "role": "reader"}
    client.post("/api/llm/members", body, format="json", HTTP_X_PROJECT_ID=str(project.pk))

    [entry] = _entries(api)
    assert (entry["actor_kind"], entry["actor_name"], entry["actor_id"]) == ("user", "ann", str(ann.pk))
    assert (entry["object_kind"], entry["object_label"], entry["changes"]) == (
        "member",
        "bob",
        {"role": [None, "reader"]},
    )


def test_page__members__recorded_as_pages(project: Project, api: APIClient) -> None:
    client = Client()
    client.force_login(User.objects.create_superuser("root"))
    bob = make_staff(Role.READER, project, name="bob")
    row = Membership.objects.get(user=bob)

    for values in ({"action": "change", "role": "editor"}, {"action": "remove"}):
        assert client.post(f"/admin/members/?project={project.pk}", {"member": row.pk, **values}).status_code == 302

    deleted, changed = _entries(api)
    assert (changed["actor_name"], changed["via"]) == ("root", "page")
    assert changed["operation"] == "members"
    assert changed["changes"] == {"role": ["reader", "editor"]}
    assert (deleted["action"], deleted["changes"]) == ("deleted", {"role": ["editor", None]})


def test_command__adds_a_member__is_the_actor(project: Project, api: APIClient) -> None:
    make_staff(name="bob")

    call_command("add_member", "bob", project=str(project.pk), role="reader")

    [entry] = _entries(api)
    assert (entry["actor_kind"], entry["actor_name"], entry["via"]) == ("command", "add_member", "command")


def test_project_deleted__its_entries_go_and_the_deletion_stays(project: Project, api: APIClient) -> None:
    api.put("/api/llm/settings", {"retry_max_attempts": 3}, format="json")
    with recording() as collected:
        project.delete()

    write(collected.made, actor="user:root", via="page", operation="core_project_delete")

    entries = AuditEntry.objects.filter(object_kind="project")
    assert [(entry.project_id, entry.action, entry.object_label) for entry in entries] == [
        (None, "deleted", project.name)
    ]
    assert AuditEntry.objects.count() == 1


def test_filters__each__narrow_the_list(api: APIClient) -> None:
    api.put("/api/llm/settings", {"retry_max_attempts": 3}, format="json")
    api.post("/api/llm/keys", {"name": "shop", "scopes": ["gateway"]}, format="json")

    assert len(_entries(api)) == 2
    for query in ({"operation": "issueApiKey"}, {"object_kind": "API key"}, {"object_id": "shop"}):
        assert [entry["object_label"] for entry in _entries(api, **query)] == ["shop"]
    assert len(_entries(api, actor="robot")) == 2
    assert _entries(api, actor="ann") == []
    assert _entries(api, via="page") == []
    assert _entries(api, end_date="2020-01-01") == []


def test_entries__of_another_project__not_seen(api: APIClient) -> None:
    client_of(make_project()).put("/api/llm/settings", {"retry_max_attempts": 3}, format="json")

    assert _entries(api) == []
