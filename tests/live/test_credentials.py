"""No credential of a provider is found where a run leaves traces: database, spool, logs, Redis, ClickHouse, answers."""

from __future__ import annotations

import base64
import json
import re
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import openai
import pytest
import requests
from clickhouse_driver import Client as ClickHouse

from integrations.registry import default_model
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer, answer_with, breaks, fails
from tests.fakes.dialects.story import Story
from tests.fakes.scripted import raw
from tests.live.conftest import StartService
from tests.live.prompts import Team
from tests.live.service import LiveService
from tests.waiting import wait_until

OVER_API = (
    "openai",
    "anthropic",
    "google",
    "google_vertex",
    "azure_openai",
    "mistral",
    "cohere",
    "openrouter",
    "bedrock",
)
OVER_ADMIN = "groq"
FROM_ENVIRONMENT = "deepseek"
_SECRET = ("api_key", "access_key_id", "secret_access_key", "session_token")
MARK = "mark-of-this-run-5b1d"


class Canaries:
    """Credentials that occur nowhere else.

    The search looks for the middle of each, so that a part of one is found as well, and for its base64 at each
    alignment, which Celery's messages in Redis use.
    """

    def __init__(self) -> None:
        self.middles: list[str] = []

    def key(self, head: str = "canary.of.no.vendor.") -> str:
        middle = secrets.token_hex(12)
        self.middles.append(middle)
        return f"{head}{middle}-tail"

    def found_in(self, data: bytes) -> list[str]:
        return [middle for middle in self.middles if any(needle in data for needle in _needles(middle))]


def _needles(middle: str) -> list[bytes]:
    raw_bytes = middle.encode()
    encoded = [base64.b64encode(b"\0" * shift + raw_bytes)[4:-4] for shift in range(3)]
    # The first 12 characters alone are enough to identify a key.
    return [raw_bytes[:12], raw_bytes[-12:], raw_bytes.upper()[:12], raw_bytes[::-1][:12], *encoded]


@pytest.fixture
def upstream() -> Iterator[DialectServer]:
    with DialectServer() as running:
        yield running


class Run:
    """The fake providers repeat every credential in their answers. `outputs` holds all answers of the service."""

    def __init__(self, service: LiveService, upstream: DialectServer, canaries: Canaries) -> None:
        self.service = service
        self.upstream = upstream
        self.canaries = canaries
        self.outputs: list[str] = []
        self.answered: set[str] = set()
        self.sent: dict[str, list[str]] = {}

    def uses(self, provider: str, fields: dict[str, str]) -> None:
        self.sent[provider] = [value for name, value in fields.items() if name in _SECRET]

    def call(self, method: str, path: str, body: Any = None, *, status: int | None = None) -> Any:
        service = self.service
        headers = {"Authorization": f"Bearer {service.api_key}", "X-Project-Id": service.project_id}
        url = f"{service.base_url}/api/llm/{path}"
        given: dict[str, Any] = {"data": body} if isinstance(body, str) else {"json": body}
        if isinstance(body, str):
            headers["Content-Type"] = "application/json"
        answer = requests.request(method, url, headers=headers, timeout=60, **given)
        self.outputs.append(answer.text + str(answer.headers))
        assert status is None or answer.status_code == status, answer.text
        return answer.json() if answer.content else None

    def credential(self, provider: str) -> dict[str, str]:
        access = FAKES[provider].credentials(self.upstream.base_url(provider))
        body = {"base_url": access.base_url}
        if provider == "bedrock":
            names = ("access_key_id", "secret_access_key", "session_token")
            return {**body, "region": access.extra["region"], **{name: self.canaries.key("AKIA") for name in names}}
        head = "ya29." if provider == "google_vertex" else "canary.of.no.vendor."
        return {**body, **access.extra, "api_key": self.canaries.key(head)}

    def chatter(self, provider: str) -> str:
        return f"not with {' or '.join(self.sent[provider])}"

    def chat(self, provider: str, *, stream: bool) -> None:
        client = self.service.openai(max_retries=0, default_headers={"x-svc-session-id": f"{MARK}-{provider}"})
        try:
            answer = client.chat.completions.create(
                model=f"{provider}/{default_model(provider)}",
                messages=[{"role": "user", "content": f"Hello, {MARK}"}],
                stream=stream,
            )
            self.outputs.append("".join(map(str, answer)) if stream else str(answer))
            self.answered.add(provider)
        except openai.APIError as error:
            self.outputs.append(f"{error} {error.body}")
        client.close()


def test_credentials__of_a_run_with_failures__in_no_file_table_log_or_answer(
    start_service: StartService, upstream: DialectServer
) -> None:
    canaries = Canaries()
    run = _started(start_service, upstream, canaries)
    operator = Operator(run.service)
    _set_up(run, operator)
    for provider in (*OVER_API, OVER_ADMIN, FROM_ENVIRONMENT):
        _try(run, provider)
        _send_traffic(run, provider)
    assert run.answered == {*OVER_API, OVER_ADMIN, FROM_ENVIRONMENT}
    _give_wrong_input(run)
    operator.press_test_of(run, OVER_ADMIN)
    run.outputs.append(operator.team.command("rotate_encryption_keys"))
    service = run.service
    for provider in (*OVER_API, OVER_ADMIN, FROM_ENVIRONMENT):
        wait_until(lambda name=provider: service.manage(f"sessions/{MARK}-{name}").status_code == 200)  # type: ignore[misc]
        requests_of = service.manage(f"sessions/{MARK}-{provider}/requests")
        run.outputs.append(requests_of.text + service.manage(f"sessions/{MARK}-{provider}").text)
    rows = _everything_in_clickhouse(service.var_dir)

    assert service.stop() == 0

    assert canaries.found_in(rows) == []
    for output in run.outputs:
        assert canaries.found_in(output.encode()) == [], output
    files = {path: path.read_bytes() for path in _files(service)}
    assert [(str(path), canaries.found_in(data)) for path, data in files.items() if canaries.found_in(data)] == []
    # The search is able to find what is there: a known mark is found.
    assert MARK.encode() in rows
    database = b"".join(data for path, data in files.items() if path.name.startswith("db.sqlite3"))
    assert upstream.base_url("anthropic").encode() in database
    assert b"integration.tested" in files[service.log_file]
    assert any(path.parent.name == "appendonlydir" or path.parent.name == "redis" for path in files)


def _started(start_service: StartService, upstream: DialectServer, canaries: Canaries) -> Run:
    access = FAKES[FROM_ENVIRONMENT].credentials(upstream.base_url(FROM_ENVIRONMENT))
    key = canaries.key()
    service = start_service(
        {
            "LOG_LEVEL": "DEBUG",
            # Each worker allows 60 tests of credentials a minute, and this run makes more.
            "WEB_WORKERS": "2",
            "ALLOW_PRIVATE_UPSTREAMS": "1",
            "DEEPSEEK_API_KEY": key,
            "DEEPSEEK_BASE_URL": access.base_url,
        }
    )
    run = Run(service, upstream, canaries)
    run.sent[FROM_ENVIRONMENT] = [key]
    return run


def _set_up(run: Run, operator: Operator) -> None:
    # Retries are off, since the second attempt's failure is reported as the first one's is.
    run.call("PUT", "settings", {"retry_enabled": False}, status=200)
    for provider in OVER_API:
        run.call("POST", "integrations", {"provider": provider, **run.credential(provider)}, status=201)
        # The credential is rotated once: the earlier one must not stay anywhere either.
        fresh = {name: value for name, value in run.credential(provider).items() if name != "base_url"}
        run.call("PUT", f"integrations/{provider}", fresh, status=200)
        run.uses(provider, fresh)
    operator.add(run, OVER_ADMIN)
    listed = run.call("GET", "integrations", status=200)
    assert {row["provider"] for row in listed["results"]} == {*OVER_API, OVER_ADMIN, FROM_ENVIRONMENT}


def _try(run: Run, provider: str) -> None:
    fake, message = FAKES[provider], run.chatter(provider)
    for step in (
        fails(fake, 401, message),
        fails(fake, 429, message),
        raw(500, f"<html>{message}</html>".encode()),
        raw(200, message.encode()),
        raw(302, message.encode(), {"location": f"http://127.0.0.1:1/?key={message.split()[2]}"}),
    ):
        run.upstream.play(provider, step)
        outcome = run.call("POST", f"integrations/{provider}/test", status=200)
        assert outcome["ok"] is False
    temporary = {name: value for name, value in run.credential(provider).items() if name != "base_url"}
    stored = run.sent[provider]
    run.uses(provider, temporary)
    run.upstream.play(provider, fails(fake, 403, run.chatter(provider)))
    run.call("POST", f"integrations/{provider}/test", temporary, status=200)
    run.sent[provider] = stored


def _send_traffic(run: Run, provider: str) -> None:
    fake, message = FAKES[provider], run.chatter(provider)
    for step in (
        answer_with(fake, Story(text="Hello.")),
        fails(fake, 401, message),
        fails(fake, 400, message),
        fails(fake, 503, message),
        raw(500, message.encode()),
        raw(200, message.encode()),
    ):
        for stream in (False, True):
            run.upstream.play(provider, step)
            run.chat(provider, stream=stream)
    run.upstream.play(provider, breaks(fake, Story(text="Hello."), message))
    run.chat(provider, stream=True)


def _give_wrong_input(run: Run) -> None:
    key = run.canaries.key
    run.call("POST", "integrations", {"provider": key(), "api_key": key()})
    run.call("POST", "integrations", {"provider": "xai", "api_key": f"{key()} {key()}"}, status=400)
    run.call("POST", "integrations", {"provider": "xai", "api_key": key(), "base_url": f"ftp://x/{key()}"}, status=400)
    run.call("PUT", "integrations/google_vertex", {"api_key": json.dumps({"private_key": key()})}, status=400)
    run.call("POST", "integrations", f'{{"provider": "xai", "api_key": "{key()}"', status=400)
    run.call("PUT", "integrations/openai", {"api_key": {"secret": key()}}, status=400)
    run.call("POST", "integrations/xai/test", {"api_key": key(), "base_url": f"http://127.0.0.1:9/{key()}"}, status=200)
    run.call("DELETE", "integrations/cohere", status=204)
    # A value typed into a field that is no secret comes back in the answer that shows the field.
    run.outputs = [output for output in run.outputs if "Unknown provider" not in output]


class Operator:
    def __init__(self, service: LiveService) -> None:
        self._service = service
        name, password = f"operator-{secrets.token_hex(4)}", secrets.token_hex(16)
        arguments = (
            "createsuperuser",
            "--skip-checks",
            "--noinput",
            "--username",
            name,
            "--email",
            "operator@example.com",
        )
        self.team = Team(service, f"of {name}")
        self.team.command(*arguments, DJANGO_SUPERUSER_PASSWORD=password)
        self._session = requests.Session()
        login = "/admin/login/?next=/admin/"
        self.post(login, login, username=name, password=password)

    def post(self, page: str, url: str, **fields: str) -> str:
        base = self._service.base_url
        shown = self._session.get(f"{base}{page}", timeout=30).text
        token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', shown)
        assert token is not None, page
        data = {"csrfmiddlewaretoken": token[1], **fields}
        answer = self._session.post(f"{base}{url}", data=data, headers={"Referer": f"{base}{page}"}, timeout=60)
        assert answer.status_code == 200, (url, answer.status_code)
        return shown + answer.text

    def add(self, run: Run, provider: str) -> None:
        page = self._page_of(provider)
        access = run.credential(provider)
        run.uses(provider, access)
        # The first submission has a mistake, so that the form comes back.
        run.outputs.append(self.post(page, page, action="save", **{**access, "base_url": "nowhere"}))
        run.outputs.append(self.post(page, page, action="save", **access))

    def press_test_of(self, run: Run, provider: str) -> None:
        for path in ("/admin/integrations/providerintegration/", self._page_of("", path="/admin/keys/providers/")):
            run.outputs.append(self._session.get(f"{self._service.base_url}{path}", timeout=30).text)
        run.upstream.play(provider, fails(FAKES[provider], 401, run.chatter(provider)))
        page = self._page_of(provider)
        shown = self.post(page, page, action="test")
        assert "invalid credential" in shown
        run.outputs.append(shown)

    def _page_of(self, provider: str, *, path: str = "/admin/keys/provider/") -> str:
        return f"{path}?project={self._service.project_id}&provider={provider}"


def _everything_in_clickhouse(var_dir: Path) -> bytes:
    """Reads rows, because the files on disk are compressed."""
    url = (var_dir / "run" / "clickhouse.url").read_text(encoding="utf-8").strip()
    store = ClickHouse.from_url(url)
    # Aggregate states cannot be exported; the columns that they are made of are.
    tables = store.execute(
        "SELECT database, table, arrayStringConcat(groupArray('`' || name || '`'), ', ') FROM system.columns"
        " WHERE database NOT IN ('system', 'INFORMATION_SCHEMA', 'information_schema')"
        " AND type NOT LIKE '%AggregateFunction%' GROUP BY database, table"
    )
    rows = [
        repr(store.execute(f"SELECT {columns} FROM `{database}`.`{table}`"))  # noqa: S608  # names from the store itself
        for database, table, columns in tables
    ]
    store.disconnect()
    return "\n".join(rows).encode()


def _files(service: LiveService) -> list[Path]:
    inside = [path for path in service.var_dir.rglob("*") if path.is_file() and not path.is_socket()]
    return [*inside, service.output_file, service.log_file]
