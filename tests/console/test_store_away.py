from __future__ import annotations

from collections.abc import Iterator

import pytest
from django.test import Client

from core.models import Project
from tests.console.conftest import sent, shown, text_of
from tests.store_away import store_away

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("away")]

_AWAY = "The analytics store does not answer"


@pytest.fixture
def away() -> Iterator[None]:
    with store_away():
        yield


@pytest.mark.parametrize("path", ["/admin/guardrails/", "/admin/limits/"])
def test_page__store_away__message_and_the_form(administrator: Client, project: Project, path: str) -> None:
    text = shown(administrator, project, path)

    assert _AWAY in text
    assert "Review changes" in text


def test_form__store_away__is_saved_all_the_same(administrator: Client, project: Project) -> None:
    answer = sent(administrator, project, "/admin/limits/", rate_limit_rpm="60", action="save", seen="")

    assert answer.status_code == 302


def test_dry_run__store_away__said_and_what_was_typed_stays(administrator: Client, project: Project) -> None:
    values = {"guardrails_trust_mode": "enforce", "guardrails_blocked_input_topics": "stock tips"}

    text = text_of(sent(administrator, project, "/admin/guardrails/", **values, action="dry_run"))

    assert f"The rules were not tried: {_AWAY}" in text
    assert "stock tips" in text
