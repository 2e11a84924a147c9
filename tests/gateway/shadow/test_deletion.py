"""What is deleted leaves shadows too: the copy of the baseline's answer, the target's, and what the log has of both."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gateway.models import ExperimentAnswer
from tests.gateway.experiments.conftest import by_request, kind_of, run_all
from tests.gateway.experiments.test_erasure import OTHER, SECRET, delete, ship, stored_with
from tests.gateway.shadow.conftest import ShadowScene, follow


def quoting(body: dict[str, Any]) -> str:
    told = SECRET if SECRET in json.dumps(body) else OTHER
    if kind_of(body) == "comparison":
        return json.dumps({"reason": f"It knows {told}.", "better": "first"})
    return f"You live at {told}."


def told(text: str) -> dict[str, Any]:
    return {"role": "assistant", "content": f"So it is {text}."}


@pytest.mark.parametrize("scene", [[by_request(quoting)]], indirect=True)
def test_request__deleted__nothing_of_it_is_left_in_the_shadow_and_figures_stay(shadow: ShadowScene) -> None:
    made = shadow.create()
    request_id = shadow.served(f"I live at {SECRET}", message=told(SECRET))
    shadow.served(f"I live at {OTHER}", message=told(OTHER), session_id="other")
    shadow.run()
    ship()
    before = shadow.gate(made["id"])
    assert {"gateway.ExperimentItem", "gateway.ExperimentAnswer", "gateway.ExperimentScore", "payloads"} <= set(
        stored_with(shadow.scene, SECRET)
    )

    delete(shadow.scene, f"requests/{request_id}")

    assert stored_with(shadow.scene, SECRET) == []
    assert "gateway.ExperimentAnswer" in stored_with(shadow.scene, OTHER)
    assert shadow.gate(made["id"]) == before

    delete(shadow.scene, "sessions/other")

    assert stored_with(shadow.scene, OTHER) == []


@pytest.mark.parametrize("scene", [[by_request(quoting)]], indirect=True)
def test_request__deleted_before_the_target_is_asked__is_not_sent(shadow: ShadowScene) -> None:
    shadow.create()
    request_id = shadow.served(f"I live at {SECRET}", message=told(SECRET))
    follow()

    delete(shadow.scene, f"requests/{request_id}")
    run_all()

    assert shadow.scene.sent() == []
    assert stored_with(shadow.scene, SECRET) == []
    target = ExperimentAnswer.objects.get(candidate=1)
    assert (target.state, target.error_code, target.scores.get().value) == ("done", "unusable_item", None)


@pytest.mark.parametrize("scene", [[by_request(quoting)]], indirect=True)
def test_request__deleted_before_it_is_sampled__is_not_taken(shadow: ShadowScene) -> None:
    made = shadow.create()
    request_id = shadow.served(f"I live at {SECRET}", message=told(SECRET))

    delete(shadow.scene, f"requests/{request_id}")
    shadow.run()

    assert shadow.scene.sent() == []
    assert shadow.gate(made["id"])["shadow"]["taken"] == 0
