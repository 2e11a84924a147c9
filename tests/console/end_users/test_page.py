from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from django.test import Client

from core.models import AuditEntry, Project
from core.roles import Role
from gateway.end_users.services import END_USER_LIMITS
from gateway.tables.end_user import EndUserLimit
from tests.console.conftest import sent, shown, signed_in, text_of
from tests.factories.core import make_project
from tests.tables.cases import tabled

pytestmark = pytest.mark.django_db

PATH = "/admin/limits/end-users/"
NAME = "ann/1 <ü>"


def make(project: Project, user_id: str = NAME) -> EndUserLimit:
    return EndUserLimit.objects.create(
        project=project, user_id=user_id, monthly_budget_usd=Decimal("2.5"), rate_limit_rpm=1_000
    )


def test_page__no_limits__says_so(administrator: Client, project: Project) -> None:
    make(make_project(), "of another project")
    text = shown(administrator, project, PATH)

    assert "No end user has limits of its own" in text
    assert "of another project" not in text


def test_limits_page__reader__leads_to_the_page(project: Project) -> None:
    assert f'href="{PATH}?project={project.pk}' in shown(signed_in(project, Role.READER), project, "/admin/limits/")


def test_page__reader__sees_limits_with_links_to_requests_and_no_form(project: Project) -> None:
    make(project)
    text = shown(signed_in(project, Role.READER), project, PATH)

    assert f'data-id="{NAME}"' in text
    assert f"/admin/analytics/users/{project.pk}/ann/1%20%3C%C3%BC%3E" in text
    assert "$2.5" in text
    assert "no limit" in text
    assert 'name="rate_limit_rpm"' not in text
    assert ">Change</a>" not in text


def test_form__administrator__makes_changes_and_removes(administrator: Client, project: Project) -> None:
    given = {"monthly_budget_usd": "2.5", "rate_limit_rpm": "10", "max_concurrent_requests": "3", "action": "save"}
    assert sent(administrator, project, PATH, user_id=NAME, **given).status_code == 302
    row = END_USER_LIMITS.rows(project.pk).get()
    assert (row.user_id, row.monthly_budget_usd, row.rate_limit_rpm) == (NAME, Decimal("2.5"), 10)
    assert (row.rate_limit_tpm, row.max_concurrent_requests) == (None, 3)

    text = shown(administrator, project, PATH, limit=row.pk)
    assert 'value="2.5"' in text
    assert 'name="user_id"' not in text
    path = f"{PATH}?project={project.pk}&limit={row.pk}"
    # The name of a user does not change, even if it is sent.
    changed = {"user_id": "bob", "monthly_budget_usd": "", "rate_limit_rpm": "10", "rate_limit_tpm": "500"}
    assert administrator.post(path, {**changed, "action": "save"}).status_code == 302
    row.refresh_from_db()
    assert (row.user_id, row.monthly_budget_usd, row.rate_limit_rpm) == (NAME, None, 10)
    assert (row.rate_limit_tpm, row.max_concurrent_requests) == (500, None)

    assert administrator.post(path, {"action": "remove"}).status_code == 302
    assert not END_USER_LIMITS.rows(project.pk).exists()
    entries = AuditEntry.objects.filter(object_kind="end user's limits").order_by("id")
    assert [entry.action for entry in entries] == ["created", "changed", "deleted"]
    # The name of an end user may be a person's.
    assert not any("ann" in f"{entry.object_label} {entry.summary} {entry.changes}" for entry in entries)


@tabled
def test_form__invalid__says_why(administrator: Client, project: Project, given: dict[str, Any], problem: str) -> None:
    make(project)
    text = text_of(sent(administrator, project, PATH, **{"user_id": "bob", **given, "action": "save"}))

    assert text.count('class="errorlist') == 1
    assert problem in text
    assert END_USER_LIMITS.rows(project.pk).count() == 1


def test_page__more_limits_than_a_page_holds__leads_to_the_next(administrator: Client, project: Project) -> None:
    EndUserLimit.objects.bulk_create(EndUserLimit(project=project, user_id=f"user-{place:03}") for place in range(101))
    first = shown(administrator, project, PATH)

    assert "user-099" in first
    assert "user-100" not in first
    assert "p=2" in first
    assert "user-100" in shown(administrator, project, PATH, p=2)


@pytest.mark.parametrize("limit", ["none", "0", "9" * 30])
def test_page__limits_that_are_not_there__404(administrator: Client, project: Project, limit: str) -> None:
    assert administrator.get(PATH, {"project": str(project.pk), "limit": limit}).status_code == 404


def test_page__limits_of_another_project__404(administrator: Client, project: Project) -> None:
    row = make(make_project())

    assert administrator.get(PATH, {"project": str(project.pk), "limit": str(row.pk)}).status_code == 404
