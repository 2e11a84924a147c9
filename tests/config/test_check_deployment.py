from __future__ import annotations

import io
import json
import os
from typing import Any

import pytest
from cryptography.fernet import Fernet
from django.core.management import call_command
from django.test import override_settings
from pytest_django import Settings

from core.encryption.canary import ensure_canary
from integrations.services import IntegrationChange, add_integration
from tests.factories.core import make_project

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("clickhouse")]


@pytest.fixture(autouse=True)
def fit(db: None, settings: Settings) -> None:
    ensure_canary()
    settings.ALLOWED_HOSTS = ["gateway.example.com"]


def check() -> tuple[bool, dict[str, Any]]:
    out = io.StringIO()
    try:
        call_command("check_deployment", json=True, stdout=out)
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0)
    report = json.loads(out.getvalue())
    assert report["fit"] == (code == 0)
    return report["fit"], {problem["check"]: problem for problem in report["problems"]}


def test_check_deployment__nothing_wrong__fit_and_silent() -> None:
    # The free space of the machine that runs the suite must not decide this test.
    fit, problems = check()

    assert fit
    assert not problems.keys() - {"disk"}


def test_check_deployment__debug_and_every_host__error_and_warning(settings: Settings) -> None:
    settings.DEBUG, settings.ALLOWED_HOSTS = True, ["*"]

    fit, problems = check()

    assert not fit
    assert problems["debug"]["is_fatal"]
    assert not problems["allowed_hosts"]["is_fatal"]


def test_check_deployment__hosts_of_this_machine_alone__says_who_is_refused_under_others(settings: Settings) -> None:
    """A call with a key is served under any name (`tests/core/test_hosts.py`)."""
    settings.ALLOWED_HOSTS = ["localhost", "127.0.0.1"]

    assert "calls without a key, refuse every other Host" in check()[1]["allowed_hosts"]["message"]


def test_check_deployment__other_encryption_keys__names_them_and_the_unreadable_credential(settings: Settings) -> None:
    add_integration(project_id=make_project().pk, provider="openai", change=IntegrationChange(secret="sk-here-0123456"))
    settings.ENCRYPTION_KEYS = [Fernet.generate_key().decode()]

    fit, problems = check()

    assert not fit
    assert "ENCRYPTION_KEYS" in problems["secrets"]["message"]
    assert "openai" in problems["credentials"]["message"]
    assert "sk-here" not in str(problems)


def test_check_deployment__stores_away__names_each_and_goes_on() -> None:
    with override_settings(
        REDIS_URL="redis://user:private@127.0.0.1:1/0", CLICKHOUSE_URL="clickhouse://user:private@127.0.0.1:1/llm"
    ):
        fit, problems = check()

    assert not fit
    assert {"redis", "clickhouse"} <= problems.keys()
    assert "private" not in str(problems)


def test_check_deployment__sandbox_under_production_settings__error(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SANDBOX = True
    monkeypatch.setitem(os.environ, "DJANGO_SETTINGS_MODULE", "config.settings.production")

    assert "sandbox" in check()[1]
