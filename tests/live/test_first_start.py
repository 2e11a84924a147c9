from __future__ import annotations

from tests.live.conftest import StartService
from tests.live.service import LiveService, run_curl
from tests.live.waiting import wait_for


def test_first_start__printed_curl_line__answers(live_service: LiveService) -> None:
    answer = run_curl(live_service.curl)

    assert answer["choices"][0]["message"]["content"] == "Hello"
    assert answer["usage"]["total_tokens"] > 0


def test_first_start__one_session__is_listed_with_its_cost(live_service: LiveService) -> None:
    client = live_service.openai(default_headers={"x-svc-session-id": "first-start"})
    client.chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "Hello"}])

    def listed() -> dict[str, object] | None:
        response = live_service.manage("sessions", name_pattern="first-start")
        assert response.status_code == 200, response.text
        results: list[dict[str, object]] = response.json()["results"]
        return results[0] if results else None

    session = wait_for(listed)
    assert session["request_count"] == 1
    assert session["error_count"] == 0


def test_later_start__same_var_dir__prints_the_address_only_and_keeps_the_key(start_service: StartService) -> None:
    first = start_service()
    assert first.stop() == 0

    second = start_service()

    assert second.output.strip().count("\n") == 0
    assert second.base_url in second.output
    second.api_key = first.api_key
    answer = second.openai().chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "Hi"}])
    assert answer.choices[0].message.content == "Hi"
    assert second.stop() == 0


def test_start__without_sandbox__announces_none(start_service: StartService) -> None:
    service = start_service({"SANDBOX": "0", "WEB_WORKERS": "1"})

    assert not (service.var_dir / "run" / "sandbox.url").exists()
    assert service.pid("sandbox") is None
    assert service.stop() == 0
