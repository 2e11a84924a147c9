from __future__ import annotations

import uuid
from typing import Any

import pytest
import requests

from tests.live.prompts import Team
from tests.live.service import LiveService
from tests.services import START_SECONDS
from tests.waiting import wait_until


@pytest.fixture(scope="module")
def team(live_service: LiveService) -> Team:
    return Team(live_service, "forgotten")


def test_session__deleted_while_a_record_is_on_its_way__is_gone_and_its_account_stays(team: Team) -> None:
    session = f"forget-{uuid.uuid4().hex}"
    complete(team, session)
    wait_until(lambda: manage(team, f"sessions/{session}").status_code == 200, what="the session")
    before = total_requests(team)
    complete(team, session)

    answer = manage(team, f"sessions/{session}", method="DELETE")

    assert answer.status_code == 204
    wait_until(lambda: total_requests(team) > before, what="the last record")
    # The worker finds the records that were on their way; the test before may have killed it, so the wait is long.
    wait_until(lambda: is_gone(team, session), seconds=START_SECONDS, what="the end of the session")
    assert total_requests(team) == before + 1


def test_session__used_again_after_its_deletion__is_a_new_one(team: Team) -> None:
    session = f"again-{uuid.uuid4().hex}"
    complete(team, session)
    wait_until(lambda: manage(team, f"sessions/{session}").status_code == 200, what="the session")
    assert manage(team, f"sessions/{session}", method="DELETE").status_code == 204
    assert manage(team, f"sessions/{session}").status_code == 404

    complete(team, session)

    def found() -> dict[str, Any] | None:
        answer = manage(team, f"sessions/{session}")
        return answer.json() if answer.status_code == 200 else None

    assert wait_until(found, what="the new session")["request_count"] == 1


def complete(team: Team, session: str) -> None:
    with team.client() as client:
        client.with_options(max_retries=5).chat.completions.create(
            model="sandbox/echo",
            messages=[{"role": "user", "content": "Forget me"}],
            extra_headers={"x-svc-session-id": session},
        )


def manage(team: Team, path: str, *, method: str = "GET", **parameters: str) -> requests.Response:
    headers = {"Authorization": f"Bearer {team.api_key}", "X-Project-Id": team.project_id}
    query = {"project_id": team.project_id, **parameters}
    url = f"{team.service.base_url}/api/llm/{path}"
    return requests.request(method, url, headers=headers, params=query, timeout=60)


def is_gone(team: Team, session: str) -> bool:
    found = manage(team, "requests", session_id=session).json()["count"]
    return manage(team, f"sessions/{session}").status_code == 404 and found == 0


def total_requests(team: Team) -> int:
    return int(manage(team, "metrics/overview").json()["total_requests"])
