"""Deleting a session of the running service, with records of it that are still on their way."""

from __future__ import annotations

import uuid

import requests

from tests.live.service import LiveService
from tests.live.waiting import wait_for


def test_session__deleted_while_a_record_is_on_its_way__is_gone_and_its_account_stays(
    live_service: LiveService,
) -> None:
    session = f"forget-{uuid.uuid4().hex}"
    say(live_service, session)
    wait_for(lambda: live_service.manage(f"sessions/{session}").status_code == 200, what="the session")
    before = total_requests(live_service)
    say(live_service, session)

    answer = delete(live_service, session)

    assert answer.status_code == 204
    wait_for(lambda: total_requests(live_service) > before, what="the last record")
    # What was on its way is found by the worker; nobody asks again.
    wait_for(lambda: live_service.manage(f"sessions/{session}").status_code == 404, what="the end of the session")
    assert total_requests(live_service) > before
    assert live_service.manage("requests", session_id=session).json()["count"] == 0


def test_session__used_again_after_its_deletion__is_a_new_one(live_service: LiveService) -> None:
    session = f"again-{uuid.uuid4().hex}"
    say(live_service, session)
    wait_for(lambda: live_service.manage(f"sessions/{session}").status_code == 200, what="the session")
    assert delete(live_service, session).status_code == 204
    assert live_service.manage(f"sessions/{session}").status_code == 404

    say(live_service, session)

    wait_for(lambda: live_service.manage(f"sessions/{session}").status_code == 200, what="the new session")
    assert live_service.manage(f"sessions/{session}").json()["request_count"] == 1


def say(service: LiveService, session: str) -> None:
    client = service.openai(default_headers={"x-svc-session-id": session}, max_retries=5)
    client.chat.completions.create(model="sandbox/echo", messages=[{"role": "user", "content": "Forget me"}])


def delete(service: LiveService, session: str) -> requests.Response:
    headers = {"Authorization": f"Bearer {service.api_key}", "X-Project-Id": service.project_id}
    return requests.delete(f"{service.base_url}/api/llm/sessions/{session}", headers=headers, timeout=60)


def total_requests(service: LiveService) -> int:
    return int(service.manage("metrics/overview").json()["total_requests"])
