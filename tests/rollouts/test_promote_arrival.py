"""Two promotions that arrive at once advance a rollout by one stage only."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from tests.rollouts.conftest import Api, promoted


@pytest.mark.parametrize(("is_later", "status", "stage"), [(False, 409, 2), (True, 200, 3)])
def test_promote__arrived_before_or_after_the_last_one_moved__only_the_later_one_moves(
    api: Api, is_later: bool, status: int, stage: int
) -> None:
    rollout_id = api.created()["id"]
    api.move(rollout_id, "start")
    before = datetime.now(UTC)
    api.move(rollout_id, "promote")

    answered, body = promoted(api, rollout_id, arrived_at=datetime.now(UTC) if is_later else before)

    assert (answered, api.get(rollout_id)["current_stage"]) == (status, stage)
    assert is_later or body["error"]["code"] == "rollout_moved"
