from __future__ import annotations

import logging
from logging.config import dictConfig

import pytest
from django.core.exceptions import SuspiciousOperation
from django.test import Client
from pytest_django import Settings
from rest_framework.test import APIClient

from config.settings.logging import LOGGING
from core.models import Project
from tests.core.conftest import headers_for
from tests.factories.core import make_key

BROWSER = {"accept": "text/html,application/xhtml+xml"}


@pytest.fixture(autouse=True)
def named(settings: Settings) -> None:
    settings.ALLOWED_HOSTS = ["gateway.example"]


@pytest.mark.parametrize("host", ["gateway.example", "web:8000", "10.1.2.3", "[fd00::1]:8000", "Gateway.Internal"])
def test_host__of_a_call_with_a_key__is_free_and_in_its_links(
    api: APIClient, project: Project, headers: dict[str, str], host: str
) -> None:
    make_key(project, ["manage"])
    answer = api.get("/api/llm/keys?limit=1", headers={**headers, "Host": host})

    assert answer.status_code == 200
    assert answer.json()["next"].lower().startswith(f"http://{host.lower()}/api/llm/keys")


def test_host__of_a_telemetry_export_with_a_key__is_free(api: APIClient, project: Project) -> None:
    headers = {**headers_for(project, make_key(project, ["gateway"])[1]), "Host": "collector.internal"}
    answer = api.post("/api/otlp/v1/metrics", b"{}", content_type="application/json", headers=headers)
    assert answer.status_code == 200


@pytest.mark.parametrize("path", ["/", "/admin/login/", "/api/schema/", "/api/llm/keys", "/api/otlp/v1/traces", "/no"])
def test_host__unknown_and_no_key__is_refused_in_one_line_that_names_the_setting(
    client: Client, caplog: pytest.LogCaptureFixture, path: str
) -> None:
    answer = client.get(path, headers={"host": "evil.example" + "x" * 9000})

    assert answer.status_code == 400
    error = answer.json()["error"]
    assert error["code"] == "host_not_allowed"
    assert "ALLOWED_HOSTS" in error["message"]
    (record,) = [record for record in caplog.records if record.name != "django.request"]
    assert "ALLOWED_HOSTS" in record.getMessage()
    assert len(record.getMessage()) < 300
    assert not record.exc_info


@pytest.mark.parametrize("host", ["a b", "evil.example/x", "", "<script>", "a@b", "x\ty"])
def test_host__that_is_no_name__is_refused_with_a_key_too(api: APIClient, headers: dict[str, str], host: str) -> None:
    answer = api.get("/api/llm/keys", headers={**headers, "Host": host})
    assert (answer.status_code, answer.json()["error"]["code"]) == (400, "host_not_allowed")


def test_host__in_a_browser__page_shows_it_as_text(client: Client) -> None:
    answer = client.get("/", headers={"host": "<b>evil</b>", **BROWSER})
    assert answer.status_code == 400
    assert b"&lt;b&gt;evil&lt;/b&gt;" in answer.content


def test_log__suspicious_request__has_no_traceback(capsys: pytest.CaptureFixture[str]) -> None:
    dictConfig({**LOGGING, "loggers": {}, "disable_existing_loggers": False})
    try:
        raise SuspiciousOperation("odd")
    except SuspiciousOperation:
        logging.getLogger("django.security.SuspiciousOperation").exception("odd")
    assert capsys.readouterr().err.count("\n") == 1
