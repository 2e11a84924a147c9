"""Two promotions that arrive at once advance a rollout by one stage only."""

from __future__ import annotations

from datetime import UTC, datetime

from tests.rollouts.conftest import Api, promoted


def test_promote__arrived_before_the_last_one_moved__409_and_same_stage(api: Api) -> None:
    rollout_id = api.created()["id"]
    api.move(rollout_id, "start")
    before = datetime.now(UTC)
    api.move(rollout_id, "promote")

    status, answer = promoted(api, rollout_id, arrived_at=before)

    assert (status, answer["error"]["code"]) == (409, "rollout_moved")
    assert api.get(rollout_id)["current_stage"] == 2


def test_promote__arrived_after_the_last_one_moved__next_stage(api: Api) -> None:
    rollout_id = api.created()["id"]
    api.move(rollout_id, "start")
    api.move(rollout_id, "promote")

    status, answer = promoted(api, rollout_id, arrived_at=datetime.now(UTC))

    assert (status, answer["current_stage"]) == (200, 3)
