"""LOG_FORMAT=json in a program of its own: whatever it writes to standard error, each line is an object of JSON."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.live.service import ROOT
from tests.tables.cases import tabled

_SET_UP = "import django; django.setup(); import logging; logger = logging.getLogger('gateway.test');"


def _run(code: str, folder: Path, **environment: str) -> list[dict[str, Any]]:
    chosen = {"LOG_FORMAT": "json", "VAR_DIR": str(folder), "DJANGO_SETTINGS_MODULE": "config.settings.base"}
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "HOST_NAME": "gateway-a", **chosen, **environment},
        capture_output=True,
        text=True,
    )
    return [json.loads(line) for line in ran.stderr.splitlines()]


def test_json_log__event_with_values__has_them_by_name(tmp_path: Path) -> None:
    (line,) = _run(f"{_SET_UP} logger.warning('key.revoked key=%s after=%.1f all=%d%%', 'k1', 0.25, 7)", tmp_path)

    assert line["ts"].endswith("+00:00")
    assert (line["level"], line["logger"], line["host"], line["role"]) == ("WARNING", "gateway.test", "gateway-a", "-c")
    assert line["message"] == "key.revoked key=k1 after=0.2 all=7%"
    assert line["event"] == "key.revoked"
    assert line["fields"] == {"key": "k1", "after": 0.25, "all": 7}


def test_json_log__extra_of_a_call__stands_in_the_line(tmp_path: Path) -> None:
    (line,) = _run(f"{_SET_UP} logger.info('integration.imported', extra={{'provider': 'openai'}})", tmp_path)

    assert line["provider"] == "openai"


def test_json_log__logged_exception__is_one_line(tmp_path: Path) -> None:
    code = f"{_SET_UP}\ntry:\n    1 / 0\nexcept ZeroDivisionError:\n    logger.exception('task.failed')"
    (line,) = _run(code, tmp_path)

    assert line["exception"].endswith("ZeroDivisionError: division by zero")


@tabled
@pytest.mark.parametrize("begin", ["import config\n", _SET_UP + "\n"])
def test_json_log__uncaught_exception__is_one_line(code: str, event: str, begin: str, tmp_path: Path) -> None:
    (line,) = _run(begin + code, tmp_path)

    assert (line["level"], line["event"]) == ("CRITICAL", event)
    assert line["exception"].startswith("Traceback (most recent call last)")
    assert line["exception"].endswith("ZeroDivisionError: division by zero")


@tabled
def test_json_log__other_output__is_wrapped(code: str, tmp_path: Path) -> None:
    lines = _run(f"import config; {code}", tmp_path)

    assert any("left over" in line["message"] for line in lines)
    assert ("in two lines" in code) == (lines[-1]["message"] == "in two lines")
    assert {"ts", "level", "logger", "role", "host"} <= lines[0].keys()


def test_json_log__variable_that_cannot_be_read__is_one_line(tmp_path: Path) -> None:
    (line,) = _run(_SET_UP, tmp_path, WEB_WORKERS="many")

    assert line["message"] == "Environment variable WEB_WORKERS: expected a whole number"


def test_json_log__refused_command__is_one_line(tmp_path: Path) -> None:
    code = (
        "import sys; from django.core.management import execute_from_command_line as run; run(['m', 'sandbox', '-x'])"
    )
    lines = _run(code, tmp_path)

    assert any("error: unrecognized arguments: -x" in line["message"] for line in lines)


def test_json_log__another_name__is_refused(tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "manage.py", "check"],
        cwd=ROOT,
        env={"PATH": os.environ["PATH"], "VAR_DIR": str(tmp_path), "LOG_FORMAT": "xml"},
        capture_output=True,
        text=True,
    )

    assert ran.stderr == "Environment variable LOG_FORMAT: expected one of text, json\n"
