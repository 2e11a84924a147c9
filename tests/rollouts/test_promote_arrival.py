"""Of two promotions that arrive at once, the one whose turn comes late does not advance another stage."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

from django.test import AsyncRequestFactory
from rest_framework.response import Response

from core.arrival import ARRIVED_AT
from rollouts.views import PromoteView
from tests.factories.core import make_key
from tests.rollouts.conftest import PATH, Api


def promoted(api: Api, rollout_id: str, *, waited: timedelta) -> tuple[int, dict[str, Any]]:
    """The answer to a promotion that arrived, and then waited so long for its turn."""
    headers = {"Authorization": f"Bearer {make_key(api.project)[1]}", "X-Project-Id": str(api.project.pk)}
    request = AsyncRequestFactory().post(f"{PATH}/{rollout_id}/promote", {}, "application/json", headers=headers)
    request.scope = {**request.scope, ARRIVED_AT: datetime.now(UTC) - waited}
    response = PromoteView.as_view()(request, rollout_id=rollout_id)
    assert isinstance(response, Response)
    response.render()
    return response.status_code, json.loads(response.content)


def test_promote__arrived_before_the_last_one_moved__409_and_same_stage(api: Api) -> None:
    rollout_id = api.created()["id"]
    api.move(rollout_id, "start")
    api.move(rollout_id, "promote")

    status, answer = promoted(api, rollout_id, waited=timedelta(seconds=5))

    assert (status, answer["error"]["code"]) == (409, "rollout_moved")
    assert api.get(rollout_id)["current_stage"] == 2


def test_promote__arrived_after_the_last_one_moved__next_stage(api: Api) -> None:
    rollout_id = api.created()["id"]
    api.move(rollout_id, "start")
    api.move(rollout_id, "promote")

    status, answer = promoted(api, rollout_id, waited=timedelta(0))

    assert (status, answer["current_stage"]) == (200, 3)
