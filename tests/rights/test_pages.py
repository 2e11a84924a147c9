from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from django.contrib import admin
from django.contrib.auth.models import User
from django.db import models, transaction
from django.test import Client
from django.urls import URLPattern

from core.models import ApiKey, Membership, Project
from core.rights.asking import may
from core.rights.checks import every_page_has_a_line, page_names
from core.rights.table import MODELS, PAGES
from core.roles import RIGHTS_OF, Right, Role
from gateway.models import Experiment
from gateway.tables.figure_alert import FigureAlert
from tests.factories.core import make_key, make_staff
from tests.factories.everything import one_of_everything
from tests.night import cases
from tests.openapi.conftest import REQUEST_ID
from tests.rights.conftest import PEOPLE, Populated, opened_below, person, signed_in

# Django's unnamed pages: the redirect of a row's bare address, and the catch-all.
_NAMELESS = ("<path:object_id>/", "(?P<url>.*)$")
# The answers of these pages of Django depend on more than the rights of the caller.
_OF_DJANGO = {"login", "logout", "app_list", "view_on_site", "autocomplete"}
# Pages of somebody who is not signed in yet: tests/sign_in.
_WAYS_IN = {"sign_in", "sign_in_callback", "second_factor_code", "invitation"}
# Files within a request, asked for by tests/console/requests and reviews with a request that has one.
_FILES = {"analytics_requests_image", "review_image"}
# These pages are called by POST: they answer no GET.
_BY_POST = {"agent_panel_rendered"}
# The address of these names no project, so a right in any project opens them.
_WHOLE = {"agent_panel_rendered", "model", "request_link"}
# The roles with the fewest and with the most rights, of which each has all of the one below it.
_ROLES = cases(list(Role), by_day=[Role.READER_WITHOUT_CONTENT, Role.ADMINISTRATOR])


class Page(NamedTuple):
    name: str
    address: str
    # True if the page shows rows of a project that its address names.
    of_project: bool

    @property
    def right(self) -> Right:
        return PAGES[self.name]


def test_table__pages_of_the_admin__all_have_a_line_and_no_other_has() -> None:
    names = set(page_names())  # The call imports the pages of all apps.

    assert [error.msg for error in every_page_has_a_line()] == []
    # Some tables lack pages that Django makes for a table.
    tables = {f"{model}_{page}" for model in MODELS for page in ("changelist", "add", "change", "delete", "history")}
    stale = sorted(set(PAGES) - names - tables)
    assert not stale, f"These lines of PAGES in core/rights/table.py are of nothing any more: {stale}"
    registered = {f"{model._meta.app_label}_{model._meta.model_name}" for model in admin.site._registry}
    assert set(MODELS) == registered


def test_pages__all__have_names_that_the_table_can_say() -> None:
    nameless = [pattern for pattern in _patterns(admin.site.get_urls()) if pattern.name is None]

    assert {str(pattern.pattern).lstrip("^") for pattern in nameless} <= set(_NAMELESS)


@pytest.fixture
def mine(own: Project) -> dict[str, Any]:
    return one_of_everything(own)


@pytest.mark.parametrize("who", PEOPLE)
def test_pages__of_the_own_project__as_the_role_allows(
    who: str, own: Project, mine: dict[str, Any], populated: Populated, offline: None
) -> None:
    user = person(who, own)
    client = signed_in(user)

    wrong = []
    for page in pages_of(own, mine):
        if opened_below(who, page.right):
            continue
        status = _status(client, page)
        allowed = may(user, page.right, own.pk) if page.of_project else may(user, page.right)
        if page.name.startswith("auth_user") or page.right in (Right.NOBODY, Right.OPERATE):
            allowed = may(user, page.right)
        if allowed != (status in (200, 302)):
            wrong.append(f"{page.name} ({page.right}): {status}")

    assert not wrong


@pytest.mark.parametrize("role", _ROLES)
def test_pages__of_another_project__not_there(
    role: Role, own: Project, other: Project, populated: Populated, offline: None
) -> None:
    client, theirs = signed_in(person(role, own)), one_of_everything(other)

    wrong = []
    for page in pages_of(other, theirs):
        if not page.of_project:
            continue
        status = _status(client, page)
        if status != (404 if page.right in RIGHTS_OF[role] else 403):
            wrong.append(f"{page.name} ({page.right}): {status}")

    assert not wrong


@pytest.mark.parametrize("role", _ROLES)
def test_lists__two_projects__show_the_rows_of_the_own_one(
    role: Role, own: Project, other: Project, mine: dict[str, Any], populated: Populated
) -> None:
    one_of_everything(other)
    client = signed_in(person(role, own))
    for model in MODELS:
        if not may(_user(client), PAGES[f"{model}_changelist"]):
            continue
        content = client.get(f"/admin/{model.replace('_', '/', 1)}/").content.decode()
        assert other.name.replace("'", "&#x27;") not in content, model
        assert str(other.pk) not in content, model


def test_autocomplete__project__offers_the_own_ones(own: Project, other: Project) -> None:
    client = signed_in(make_staff(Role.ADMINISTRATOR, own))
    query = {"app_label": "gateway", "model_name": "gatewaysettings", "field_name": "project"}

    found = client.get("/admin/autocomplete/", query).json()["results"]

    assert [item["id"] for item in found] == [str(own.pk)]


def test_actions__on_rows_where_the_role_is_lower__leave_them(own: Project, other: Project) -> None:
    user = make_staff(Role.ADMINISTRATOR, own)
    Membership.objects.create(project=other, user=user, role=Role.EDITOR)
    ours, theirs = make_key(own)[0], make_key(other)[0]
    client = signed_in(user)

    chosen = {"action": "delete_selected", "_selected_action": [ours.pk, theirs.pk], "post": "yes"}
    client.post("/admin/core/apikey/", chosen)

    assert list(ApiKey.objects.filter(pk__in=[ours.pk, theirs.pk])) == [theirs]


def test_saving__with_the_right_to_look_alone__changes_nothing(own: Project) -> None:
    client, name = signed_in(make_staff(Role.READER, own)), own.name

    page = f"/admin/core/project/{own.pk}/change/"

    assert client.get(page).status_code == 200
    assert client.post(page, {"name": "changed"}).status_code == 403
    own.refresh_from_db()
    assert own.name == name


def test_permissions_of_django__without_a_role__open_nothing(own: Project) -> None:
    user = make_staff()
    user.user_permissions.set(_every_permission())
    client = signed_in(user)

    for name in ("core/apikey", "auth/user", "analytics/requests", "gateway/playground", "core/project"):
        assert client.get(f"/admin/{name}/").status_code == 403, name


def test_accounts__made_by_somebody_who_is_no_superuser__are_not(own: Project) -> None:
    client = signed_in(make_staff(Role.ADMINISTRATOR, own))
    given = {"username": "eve", "password1": "long enough 1", "password2": "long enough 1", "usable_password": "true"}

    assert client.post("/admin/auth/user/add/", given).status_code == 403
    assert client.post("/admin/core/project/add/", {"name": "another"}).status_code == 403
    assert not User.objects.filter(username="eve").exists()


def pages_of(project: Project, rows: dict[str, Any]) -> Iterator[Page]:
    for pattern, prefix in _placed(admin.site.get_urls(), "/admin/"):
        name = pattern.name
        if name is None or name in _OF_DJANGO | _FILES | _WAYS_IN:
            continue
        address = _filled(f"{prefix}{pattern.pattern}", _values(name, project, rows))
        yield Page(name, address, "<" in str(pattern.pattern) + prefix and not _is_of_all(name))


def _filled(path: str, values: dict[str, Any]) -> str:
    return re.sub(r"<(?:\w+:)?(\w+)>", lambda found: str(values[found[1]]), path)


def _is_of_all(name: str) -> bool:
    return name in _WHOLE or name.startswith(("integrations_pricesynclog", "auth_user"))


def _values(name: str, project: Project, rows: dict[str, Any]) -> dict[str, Any]:
    model, _, _ = name.rpartition("_")
    row = rows.get(model)
    return {
        "object_id": getattr(row, "pk", ""),
        "id": rows["auth_user"].pk,
        "project_id": project.pk,
        "request_id": REQUEST_ID,
        "family": "gpt-4o",
        "session_id": "session",
        "user_id": "user",
        "integration_id": rows["integrations_providerintegration"].pk,
        "queue_id": rows["analytics_reviewqueue"].pk,
        "dataset_id": rows["analytics_dataset"].pk,
        "dashboard_id": rows["analytics_dashboard"].pk,
        "config_id": rows["prompts_promptconfig"].pk,
        "rollout_id": rows["rollouts_rollout"].pk,
        "experiment_id": Experiment.objects.get_or_create(project=project, defaults={"item_limit": 1})[0].pk,
        "version_id": rows["prompts_promptversion"].pk,
        "evaluator_id": rows["analytics_evaluator"].pk,
        "evaluation_id": rows["analytics_onlineevaluation"].pk,
        "alert_id": FigureAlert.objects.filter(project=project).values_list("pk", flat=True)[0],
    }


def _status(client: Client, page: Page) -> int:
    with transaction.atomic():
        if page.name in _BY_POST:
            answer = client.post(page.address, '{"texts": []}', content_type="application/json")
        else:
            answer = client.get(page.address)
        transaction.set_rollback(True)
    return answer.status_code


def _patterns(patterns: list[Any]) -> Iterator[URLPattern]:
    yield from (pattern for pattern, _ in _placed(patterns, ""))


def _placed(patterns: list[Any], prefix: str) -> Iterator[tuple[URLPattern, str]]:
    for pattern in patterns:
        if isinstance(pattern, URLPattern):
            yield pattern, prefix
        else:
            yield from _placed(pattern.url_patterns, f"{prefix}{pattern.pattern}")


def _user(client: Client) -> User:
    return User.objects.get(pk=client.session["_auth_user_id"])


def _every_permission() -> models.QuerySet[Any]:
    from django.contrib.auth.models import Permission

    return Permission.objects.all()
