"""The headers about the managed prompt in the answer to a request that fails."""

from __future__ import annotations

from tests.fakes import scripted as play
from tests.gateway.conftest import Scripted
from tests.gateway.managed import make_prompt
from tests.gateway.wire import body


def test_failure_of_the_provider__says_version_and_variant(scripted: Scripted) -> None:
    gateway, _ = scripted(play.status(400))
    prompt = make_prompt(gateway, "Old.", "New.")
    sent = body(prompt_config="support")

    response = gateway.post(sent)
    assert (response.status_code, response.headers["x-svc-prompt-version"]) == (400, "1")
    assert "x-svc-variant" not in response.headers

    rollout = prompt.roll_out(prompt.version_ids[1], 100)
    answered = gateway.service.until(
        lambda: gateway.post(sent), lambda found: found.headers.get("x-svc-variant") == "target"
    )
    assert (answered.status_code, answered.headers["x-svc-prompt-version"]) == (400, "2")

    rollout.move("pause")
    paused = gateway.service.until(lambda: gateway.post(sent), lambda found: "x-svc-warning" in found.headers)
    assert paused.status_code == 400
    assert paused.headers["x-svc-warning"] == "prompt config 'support' was skipped: its rollout is paused"
    assert "x-svc-prompt-version" not in paused.headers


def test_failure_before_any_call__says_version_and_variant_or_why_not(scripted: Scripted) -> None:
    gateway, script = scripted(play.answer())
    variables = [{"name": "name", "type": "string", "required": True}]
    prompt = make_prompt(gateway, "Dear {{name}}.", "Dearest {{name}}.", variables=variables)
    prompt.roll_out(prompt.version_ids[1], 1)
    sent = body(prompt_config="support")

    refused = gateway.service.until(
        lambda: gateway.post(sent, headers={"x-svc-force-variant": "target"}),
        lambda found: found.headers.get("x-svc-variant") == "target",
    )
    assert (refused.status_code, refused.headers["x-svc-prompt-version"]) == (422, "2")

    unnamed = gateway.post(body(model="auto"))
    assert unnamed.status_code == 404
    assert "no prompt_config sent" in unnamed.headers["x-svc-warning"]
    assert script.received == []
