"""LOG_FORMAT=json: each line of a whole service is an object of JSON, whichever process wrote it."""

from __future__ import annotations

import json
import os
import signal
from typing import Any

import openai
import pytest

from tests.live.conftest import StartService
from tests.waiting import wait_until

_USUAL = {"ts", "level", "logger", "message", "role", "host"}


def _lines(text: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in text.splitlines()]


def test_log__of_a_service_whose_children_die__is_json_line_by_line(start_service: StartService) -> None:
    service = start_service({"LOG_FORMAT": "json", "LOG_LEVEL": "DEBUG", "HOST_NAME": "gateway-a"})
    client = service.openai(max_retries=0)
    client.chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}])
    with pytest.raises(openai.APIStatusError):
        client.chat.completions.create(model="sandbox/error-503", messages=[{"role": "user", "content": "Hello"}])
    for role, ending in (("web-1", signal.SIGKILL), ("shipper", signal.SIGINT), ("engine", signal.SIGABRT)):
        pid = wait_until(lambda role=role: service.pid(role), what=f"a process for {role}")  # type: ignore[misc]
        os.kill(pid, ending)
        service.wait_for_successor(role, pid)
    wait_until(lambda: service.pid("celery"), what="celery")
    service.kill("redis")
    wait_until(lambda: service.log.count("redis.away") and service.log.count("redis.back"), what="Redis to be back")

    assert service.stop() == 0

    lines = _lines(service.log)
    assert all(line.keys() >= _USUAL for line in lines)
    assert {line["host"] for line in lines} == {"gateway-a"}
    assert {line["role"] for line in lines} >= {"supervisor", "web-1", "engine", "redis"}
    assert any(line.get("event") == "child.restarted" and line["fields"]["role"] == "web-1" for line in lines)
    assert any(line["message"].startswith("Serving http://") for line in _lines(service.output))
