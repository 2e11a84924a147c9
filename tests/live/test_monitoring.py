"""Monitoring of a whole service: metrics on a port of their own and for API keys, and alerts to operators."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import requests
from prometheus_client.parser import text_string_to_metric_families

from tests.live.conftest import StartService
from tests.live.service import ROOT, LiveService
from tests.waiting import TIMEOUT_SECONDS, wait_until

PREFIX = "prompt_gateway_"
_DOCUMENT = ROOT / "docs" / "monitoring.md"
_DEPLOYED = sorted((ROOT / "deploy" / "monitoring").iterdir())


def value(service: LiveService, name: str, **labels: str) -> float | None:
    return service.metrics().get((PREFIX + name, frozenset(labels.items())))


@pytest.fixture(scope="module")
def families(live_service: LiveService) -> dict[str, Any]:
    def complete() -> str | None:
        text = live_service.metrics_text()
        subjects = ("budget_left_usd", "rollout_stage", "child_up", "beat_seconds")
        return text if all(name in text for name in subjects) else None

    text = wait_until(complete, what="all subjects")
    return {family.name: family for family in text_string_to_metric_families(text)}


def test_metrics__all__stand_in_the_document_as_they_are(families: dict[str, Any]) -> None:
    rows = re.findall(rf"^\| `({PREFIX}\w+)` \| ([^|]+) \| ([^|]*) \|", _DOCUMENT.read_text("utf-8"), re.MULTILINE)
    documented = {name: (kind.strip(), text.strip()) for name, kind, text in rows}

    shown = {
        name + ("_total" if family.type == "counter" else ""): (family.type, family.documentation)
        for name, family in families.items()
    }

    assert documented == shown, "\n".join(f"| `{name}` | {kind} | {text} |" for name, (kind, text) in shown.items())


@pytest.mark.parametrize("file", _DEPLOYED, ids=lambda file: file.name)
def test_dashboard_and_rules__every_metric__exists(file: Path, families: dict[str, Any]) -> None:
    named = set(re.findall(rf"{PREFIX}\w+", file.read_text(encoding="utf-8")))
    endings = {"counter": ("_total",), "histogram": ("_bucket", "_sum", "_count"), "gauge": ("",)}
    known = {name + ending for name, family in families.items() for ending in endings[family.type]}

    assert named
    assert named <= known


def test_deployed__dashboard__asks_for_something_in_each_panel() -> None:
    dashboard = json.loads((ROOT / "deploy" / "monitoring" / "grafana-dashboard.json").read_text(encoding="utf-8"))

    assert all(panel["targets"] for panel in dashboard["panels"])


def test_rules__figure_that_may_never_appear__its_absence_fires_too() -> None:
    rules = (ROOT / "deploy" / "monitoring" / "prometheus-rules.yaml").read_text(encoding="utf-8")
    document = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
    late = re.findall(r"^\| `(\w+)` \| gauge \| .*left out before", document, re.MULTILINE)

    used = [name for name in late if name in rules]
    assert used
    assert [name for name in used if f"absent({name})" not in rules] == []


def test_metrics__on_the_main_port__to_keys_with_the_scope_and_of_their_project(live_service: LiveService) -> None:
    def ask(key: str) -> requests.Response:
        headers = {"Authorization": f"Bearer {key}"} if key else {}
        return requests.get(f"{live_service.base_url}/metrics", headers=headers, timeout=TIMEOUT_SECONDS)

    assert ask("").status_code == 401
    assert ask("svc_wrong").status_code == 401
    narrow, metrics = (issue(live_service, scope) for scope in ("gateway", "metrics:read"))
    refused = ask(narrow)
    assert refused.status_code == 403
    assert refused.json()["error"]["code"] == "scope_missing"

    complete(live_service)
    counted = re.compile(rf'{PREFIX}requests_total{{[^}}]*project="{live_service.project_id}"[^}}]*}} [1-9]')
    answer = wait_until(lambda: found if counted.search((found := ask(metrics)).text) else None, what="the request")
    assert answer.headers["content-type"].startswith("text/plain")
    assert set(re.findall(r'project="([^"]*)"', answer.text)) == {live_service.project_id}
    assert f"{PREFIX}store_up" not in answer.text
    # The key's scope allows metrics alone.
    assert live_service_manage(live_service, metrics).status_code == 403


def test_store__hangs__is_shown_at_once_and_again_when_it_is_back(live_service: LiveService) -> None:
    wait_until(lambda: value(live_service, "store_up", store="redis") == 1, what="redis to be up")
    pid = wait_until(lambda: live_service.pid("redis"))
    os.kill(pid, signal.SIGSTOP)
    try:
        wait_until(lambda: value(live_service, "store_up", store="redis") == 0, what="redis to be down")
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: value(live_service, "store_up", store="redis") == 1, what="redis to be up again")


def complete(service: LiveService) -> None:
    service.openai().chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}])


def issue(service: LiveService, scope: str) -> str:
    headers = {"Authorization": f"Bearer {service.api_key}", "X-Project-Id": service.project_id}
    made = requests.post(
        f"{service.base_url}/api/llm/keys",
        headers=headers,
        json={"name": scope, "scopes": [scope]},
        timeout=TIMEOUT_SECONDS,
    )
    key: str = made.json()["key"]
    return key


def live_service_manage(service: LiveService, key: str) -> requests.Response:
    headers = {"Authorization": f"Bearer {key}", "X-Project-Id": service.project_id}
    return requests.get(f"{service.base_url}/api/llm/keys", headers=headers, timeout=TIMEOUT_SECONDS)


@contextmanager
def receiver() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    received: list[tuple[str, bytes]] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            received.append((self.headers["x-svc-signature"], body))
            self.send_response(204)
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/alerts", received
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_operators__one_alert_at_the_beginning_and_one_at_the_end__with_redis_away(start_service: StartService) -> None:
    with receiver() as (url, received):
        service = start_service(
            {
                "OPERATOR_ALERT_WEBHOOK_URL": url,
                "OPERATOR_ALERT_WEBHOOK_SECRET": "whsec_test",
                "OPERATOR_ALERT_CLEAR_SECONDS": "1",
                "HOST_NAME": "host-a",
            },
            ("--without", "celery"),
        )
        wait_until(lambda: value(service, "dead_letters") == 0, what="the first look at the spool")
        redis = wait_until(lambda: service.pid("redis"))
        os.kill(redis, signal.SIGSTOP)
        try:
            letter = service.var_dir / "spool" / "dead" / "1-2-3.reason"
            letter.parent.mkdir()
            letter.write_text("of this test")
            wait_until(lambda: len(received) == 1, what="the alert")
            wait_until(lambda: value(service, "alarms") == 1, what="the alert among the figures")
            letter.unlink()
            wait_until(lambda: len(received) == 2, what="the end of the alert")
        finally:
            os.kill(redis, signal.SIGCONT)
        alerts = [json.loads(body) for _, body in received]

        assert [(one["kind"], one["state"], one["host"]) for one in alerts] == [
            ("dead_letters", "raised", "host-a"),
            ("dead_letters", "over", "host-a"),
        ]
        for signed, body in received:
            at, _, digest = signed.removeprefix("t=").partition(",v1=")
            assert digest == hmac.new(b"whsec_test", at.encode() + b"." + body, hashlib.sha256).hexdigest()
        assert service.stop() == 0
