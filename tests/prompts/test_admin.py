"""Prompts in the admin."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.messages import get_messages
from django.test import Client
from django.urls import reverse

from core.models import Membership
from core.roles import Role
from prompts.models import PromptActivation, PromptConfig, PromptVersion
from prompts.services import activate_version, set_rollout_active
from tests.factories.core import make_project, make_staff
from tests.factories.prompts import make_config, make_version

pytestmark = pytest.mark.django_db

LIST = "admin:prompts_promptconfig_changelist"
VERSIONS = "admin:prompts_promptversion_changelist"


def change(config: PromptConfig) -> str:
    return reverse("admin:prompts_promptconfig_change", args=[config.pk])


def page(client: Client, path: str, **query: Any) -> str:
    response = client.get(path, query)
    assert response.status_code == 200, response.content
    return response.content.decode()


def messages_of(response: Any) -> str:
    return " ".join(str(message) for message in get_messages(response.wsgi_request))


def active_number(config: PromptConfig) -> int | None:
    config.refresh_from_db()
    return None if config.active_version is None else config.active_version.number


@pytest.fixture
def config() -> PromptConfig:
    """A config whose version 2 is active, after version 1."""
    config = make_config(name="greeter", versions=1)
    second = make_version(config, "Line <b>one</b>\n{{ name }}", commit_message="<i>why</i>", temperature=0.5)
    activate_version(project_id=config.project_id, config_id=config.pk, version_id=second.pk, actor="ada")
    config.refresh_from_db()
    return config


def test_lists__configs_versions_activations__shown(admin_client: Client, config: PromptConfig) -> None:
    make_config(config.project, "empty")
    assert "version 2" in page(admin_client, reverse(LIST))
    assert "empty" not in page(admin_client, reverse(LIST), q="greet")
    assert "&lt;i&gt;why&lt;/i&gt;" in page(admin_client, reverse(VERSIONS), config__id__exact=str(config.pk))
    history = page(admin_client, reverse("admin:prompts_promptactivation_changelist"), config__id__exact=config.pk)
    assert "Activated" in history and "ada" in history


def test_add_config__by_form__made_by_the_service(admin_client: Client) -> None:
    project = make_project()
    add = reverse("admin:prompts_promptconfig_add")
    assert admin_client.get(add).headers["Location"] == "/admin/prompts/new/"
    form = {"project": str(project.pk), "name": " greeter ", "description": "what for"}
    assert admin_client.post(add, form).status_code == 302
    assert PromptConfig.objects.for_project(project.pk).get().name == "greeter"
    for wrong in (form, {**form, "name": "a\u202eb"}, {**form, "name": ""}):
        assert admin_client.post(add, wrong).status_code == 200
    assert PromptConfig.objects.count() == 1


def test_change_config__name_and_description__nothing_else(admin_client: Client, config: PromptConfig) -> None:
    other = make_project()
    page(admin_client, change(config))
    form = {"name": "renamed", "description": "", "project": str(other.pk), "has_active_rollout": "on"}
    assert admin_client.post(change(config), form).status_code == 302
    config.refresh_from_db()
    assert (config.name, config.has_active_rollout) == ("renamed", False)
    assert config.project_id != other.pk
    make_config(config.project, "taken")
    response = admin_client.post(change(config), {"name": "taken", "description": ""})
    assert response.status_code == 200
    assert b"named &#x27;taken&#x27; already" in response.content


def test_version__page__shown_and_never_written(admin_client: Client, config: PromptConfig) -> None:
    version = PromptVersion.objects.get(config=config, number=2)
    path = reverse("admin:prompts_promptversion_change", args=[version.pk])
    shown = page(admin_client, path)
    assert "Line &lt;b&gt;one&lt;/b&gt;\n{{ name }}" in shown
    assert admin_client.post(path, {"system_prompt": "x"}).status_code == 403
    assert admin_client.get(reverse("admin:prompts_promptversion_add")).status_code == 403
    assert admin_client.post(reverse("admin:prompts_promptversion_delete", args=[version.pk])).status_code == 403
    assert PromptVersion.objects.get(pk=version.pk).system_prompt == version.system_prompt


def test_diff__two_selected_versions__side_by_side_as_text(admin_client: Client, config: PromptConfig) -> None:
    chosen = [version.pk for version in PromptVersion.objects.filter(config=config)]
    response = admin_client.post(reverse(VERSIONS), {"action": "compare", "_selected_action": chosen}, follow=True)
    shown = response.content.decode()
    assert "<td><del>Be helpful.</del></td>" in shown
    assert "<td><ins>Line &lt;b&gt;one&lt;/b&gt;</ins></td>" in shown
    assert "<dt>temperature</dt><dd>added" in shown
    assert "<script>alert" not in shown


def test_diff__no_choice_or_a_wrong_one__form(admin_client: Client, config: PromptConfig) -> None:
    path = reverse("admin:prompts_diff", args=[config.pk])
    assert "Compare" in page(admin_client, path)
    foreign = make_version(make_config())
    assert "Select a valid choice" in page(admin_client, path, before=str(foreign.pk), after="x")
    assert admin_client.get(reverse("admin:prompts_diff", args=[config.project_id])).status_code == 404


@pytest.mark.parametrize(("action", "count"), [("compare", 1), ("compare", 3), ("activate", 2)])
def test_version_actions__wrong_number_selected__refused(
    admin_client: Client, config: PromptConfig, action: str, count: int
) -> None:
    make_version(config)
    chosen = [version.pk for version in PromptVersion.objects.filter(config=config)[:count]]
    response = admin_client.post(reverse(VERSIONS), {"action": action, "_selected_action": chosen})
    assert messages_of(response).startswith("Select ")


def test_compare__versions_of_two_configs__refused(admin_client: Client, config: PromptConfig) -> None:
    chosen = [PromptVersion.objects.filter(config=config).latest("number").pk, make_version(make_config()).pk]
    response = admin_client.post(reverse(VERSIONS), {"action": "compare", "_selected_action": chosen})
    assert messages_of(response) == "Select two versions of one config."


def test_activate__confirms_first_then_moves_with_audit(admin_client: Client, config: PromptConfig) -> None:
    first = PromptVersion.objects.get(config=config, number=1)
    response = admin_client.post(reverse(VERSIONS), {"action": "activate", "_selected_action": [first.pk]})
    path = response.headers["Location"]
    assert "Serve version 1 of greeter" in page(admin_client, path)
    assert active_number(config) == 2

    assert admin_client.post(path, {"reason": "x" * 1001}).status_code == 200
    assert active_number(config) == 2
    response = admin_client.post(path, {"reason": "calmer"})
    assert response.headers["Location"] == change(config)
    assert active_number(config) == 1
    row = PromptActivation.objects.filter(config=config).latest("id")
    assert (row.kind, row.actor, row.reason) == ("activated", "user:admin", "calmer")
    assert LogEntry.objects.get(object_id=str(config.pk)).change_message == "Activated version 1."


def test_undo__confirms_first_then_goes_back_with_audit(admin_client: Client, config: PromptConfig) -> None:
    response = admin_client.post(reverse(LIST), {"action": "undo", "_selected_action": [config.pk]})
    path = response.headers["Location"]
    assert "Take back the last activation" in page(admin_client, path)
    assert active_number(config) == 2
    assert "Went back to version 1." in messages_of(admin_client.post(path, {"reason": ""}))
    assert active_number(config) == 1
    row = PromptActivation.objects.filter(config=config).latest("id")
    assert (row.kind, row.actor) == ("undone", "user:admin")
    assert "nothing to undo" not in messages_of(admin_client.post(path))
    assert "no activation to undo" in messages_of(admin_client.post(path))
    several = [config.pk, make_config().pk]
    response = admin_client.post(reverse(LIST), {"action": "undo", "_selected_action": several})
    assert messages_of(response).endswith("Select one config.")


def test_activate_and_delete__active_rollout__refused(admin_client: Client, config: PromptConfig) -> None:
    set_rollout_active(config_id=config.pk, active=True)
    first = PromptVersion.objects.get(config=config, number=1)
    response = admin_client.post(reverse("admin:prompts_activate", args=[config.pk, first.pk]))
    assert "while a rollout" in messages_of(response)
    assert admin_client.post(reverse("admin:prompts_promptconfig_delete", args=[config.pk])).status_code == 403
    chosen = {"action": "delete_selected", "_selected_action": [config.pk], "post": "yes"}
    admin_client.post(reverse(LIST), chosen)
    assert active_number(config) == 2


@pytest.mark.parametrize("by", ["page", "action"])
def test_delete__config__with_versions_and_history(admin_client: Client, config: PromptConfig, by: str) -> None:
    if by == "page":
        path = reverse("admin:prompts_promptconfig_delete", args=[config.pk])
        assert "Are you sure" in page(admin_client, path)
        response = admin_client.post(path, {"post": "yes"})
    else:
        chosen = {"action": "delete_selected", "_selected_action": [config.pk], "post": "yes"}
        response = admin_client.post(reverse(LIST), chosen)
    assert response.status_code == 302
    assert not PromptConfig.objects.exists()
    assert not PromptVersion.objects.exists()


def test_pages__staff_who_may_only_look__no_change(client: Client, config: PromptConfig) -> None:
    user = make_staff(Role.READER, config.project)
    client.force_login(user)
    first = PromptVersion.objects.get(config=config, number=1)
    page(client, change(config))
    page(client, reverse("admin:prompts_diff", args=[config.pk]))
    for path in (
        reverse("admin:prompts_undo", args=[config.pk]),
        reverse("admin:prompts_activate", args=[config.pk, first.pk]),
    ):
        assert (client.get(path).status_code, client.post(path).status_code) == (403, 403)
    client.post(reverse(VERSIONS), {"action": "activate", "_selected_action": [first.pk]})
    Membership.objects.filter(user=user).delete()
    assert client.get(reverse("admin:prompts_diff", args=[config.pk])).status_code == 403
    assert active_number(config) == 2


def test_pages__nobody_signed_in__login(client: Client, config: PromptConfig) -> None:
    for name in ("admin:prompts_diff", "admin:prompts_undo"):
        response = client.post(reverse(name, args=[config.pk]))
        assert response.status_code == 302
        assert "/login/" in response.headers["Location"]
    assert active_number(config) == 2


def test_activate__unknown_or_foreign_version__404(admin_client: Client, config: PromptConfig) -> None:
    for version_id in (config.pk, make_version(make_config()).pk):
        assert admin_client.post(reverse("admin:prompts_activate", args=[config.pk, version_id])).status_code == 404
