from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.agent.chat.playing import MODEL, chat, messages, running, says
from tests.fakes.scripted import ROLE, ScriptedServer, Step, chunk, stream
from tests.gateway.conftest import LONG_TIMEOUTS
from tests.gateway.service import Gateway, GatewayService
from tests.waiting import TIMEOUT_SECONDS


@contextmanager
def service_with_limit(name: str, seconds: str, *steps: Step) -> Iterator[tuple[Gateway, ScriptedServer]]:
    with ScriptedServer() as upstream, GatewayService(workers=1, settings={**LONG_TIMEOUTS, name: seconds}) as service:
        upstream.play("slow", *steps)
        yield (
            service.new_project(
                base_urls={"openai": upstream.base_url("slow")},
                routing={"agent_model": MODEL, "retry_enabled": False},
            ),
            upstream,
        )


@pytest.mark.parametrize(
    ("name", "reason"), [("AGENT_RUN_SECONDS", "longer than 10 seconds"), ("AGENT_STEP_SECONDS", "within 10 seconds")]
)
def test_chat__model_takes_too_long__is_stopped_and_its_words_are_kept(name: str, reason: str) -> None:
    steps = says("Awake."), stream(ROLE, chunk({"content": "So far"}), end="hang")
    with service_with_limit(name, "10", *steps) as (gateway, upstream):
        # The first chat of a worker takes longer than any later one.
        assert chat(gateway).text == "Awake."

        reply = chat(gateway)

        assert reply.types == ["conversation_created", "text_delta", "error"]
        assert reason in reply.error
        assert upstream.scripts["slow"].received[1].gone.wait(TIMEOUT_SECONDS)
        _, answer = messages(gateway, reply.conversation_id)
        assert (answer["content"], answer["state"], answer["error"]) == ("So far", "failed", reply.error)
        assert not running(gateway, reply.conversation_id)
