from __future__ import annotations

from collections.abc import Iterator

import pytest

from gateway.project_settings.settings import AGENT_SCOPES
from tests.agent.chat.playing import chat, messages
from tests.fakes.dialects.registry import FAKES, distinct_providers
from tests.fakes.dialects.rules.thinkers import WANTING_REASONING
from tests.fakes.dialects.story import Call, Story
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import Stage, model_of, staged

TOOLED = [provider for provider in distinct_providers() if provider in FAKES and FAKES[provider].can.tools]
SIGNING = [provider for provider in TOOLED if FAKES[provider].can.signatures]
SIGNATURE = "RXVyZWthISBzaWduZWQgYnkgdGhlIHZlbmRvcg=="
LOOK = Call("callAAA01", "get_project", {})


def looking(provider: str) -> Story:
    reasoning = "It is asked whose." if provider in WANTING_REASONING else ""
    return Story(reasoning=reasoning, calls=(LOOK,), finish="tool_calls")


@pytest.fixture(scope="module")
def stage(service: GatewayService) -> Iterator[Stage]:
    with staged(service) as made:
        yield made


def playing(stage: Stage, provider: str, *stories: Story) -> Gateway:
    stage.play(provider, *stories)
    stage.gateway.service.set_routing(
        stage.gateway.project_id, agent_model=model_of(provider), retry_enabled=False, fallback_enabled=False
    )
    return stage.gateway


@pytest.mark.parametrize("provider", TOOLED)
def test_agent__calls_a_tool_and_gets_another_question__every_turn_is_taken(stage: Stage, provider: str) -> None:
    stories = looking(provider), Story(text="It is yours."), Story(text="As I said.")
    gateway = playing(stage, provider, *stories)

    reply = chat(gateway, "Whose project is it?")
    again = chat(gateway, "Whose?", conversation_id=reply.conversation_id)

    assert (reply.text, again.text) == ("It is yours.", "As I said."), (reply.events, again.events)
    assert "error" not in reply.results[0]
    first, second, third = stage.requests_of(provider)
    assert "get_project" in first.tools and first.tools == second.tools == third.tools
    for request in (second, third):
        assert [call.name for call in request.calls] == ["get_project"]
        ((_, text),) = request.results
        assert gateway.project_id in text
    assert [row["role"] for row in messages(gateway, reply.conversation_id)] == [
        "user", "assistant", "tool", "assistant", "user", "assistant",
    ]  # fmt: skip


@pytest.mark.parametrize("provider", SIGNING)
def test_agent__model_signs_its_reasoning__it_comes_back_unchanged(stage: Stage, provider: str) -> None:
    signed = Story(reasoning="It is asked whose.", signature=SIGNATURE, calls=(LOOK,), finish="tool_calls")
    gateway = playing(stage, provider, signed, Story(text="Yours."))

    reply = chat(gateway, "Whose project is it?")

    assert reply.text == "Yours.", reply.events
    assert stage.requests_of(provider)[1].signatures == (SIGNATURE,)


@pytest.mark.parametrize("provider", TOOLED)
def test_agent__all_scopes_withdrawn__goes_on_without_what_was_called(stage: Stage, provider: str) -> None:
    stories = looking(provider), Story(text="It is yours."), Story(text="I see nothing.")
    gateway = playing(stage, provider, *stories)
    reply = chat(gateway, "Whose project is it?")
    gateway.service.set_routing(gateway.project_id, agent_scopes=[])

    try:
        again = chat(gateway, "Whose?", conversation_id=reply.conversation_id)
    finally:
        gateway.service.set_routing(gateway.project_id, agent_scopes=list(AGENT_SCOPES))

    assert again.text == "I see nothing.", again.events
    last = stage.requests_of(provider)[2]
    assert (last.tools, last.calls, last.results) == ((), (), ())
