"""Calls of tools are compared as calls: nobody executes them."""

from __future__ import annotations

import json

import pytest

from gateway.models import ExperimentAnswer
from tests.fakes.scripted import completion
from tests.fakes.upstream import Connection, Received
from tests.gateway.experiments.conftest import kind_of
from tests.gateway.shadow.conftest import ShadowScene

CALL = {"id": "call_1", "type": "function", "function": {"name": "refund", "arguments": '{"order": 7}'}}
TOOL = {"type": "function", "function": {"name": "refund", "parameters": {"type": "object"}}}


async def calling(request: Received, connection: Connection) -> None:
    """Calls the tool, and as a judge finds calls alike."""
    is_judge = kind_of(json.loads(request.body)) == "comparison"
    given = completion(json.dumps({"reason": "Both call it.", "better": "tie"}) if is_judge else "")
    if not is_judge:
        given["choices"][0] |= {
            "message": {"role": "assistant", "content": None, "tool_calls": [CALL]},
            "finish_reason": "tool_calls",
        }
    await connection.send_whole(200, json.dumps(given).encode(), {"content-type": "application/json"})


@pytest.mark.parametrize("scene", [[calling]], indirect=True)
def test_tools__called_by_the_target__the_call_is_the_answer(shadow: ShadowScene) -> None:
    shadow.create()
    called = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    shadow.served("Refund order 7.", fields={"tools": [TOOL], "parallel_tool_calls": True}, message=called)

    shadow.run()

    # One answer and two comparisons: nothing follows a call.
    assert [kind_of(body) for body in shadow.scene.sent()] == ["answer", "comparison", "comparison"]
    [sent] = shadow.sent_answers()
    assert sent["tools"] == [TOOL]
    target = ExperimentAnswer.objects.get(candidate=1)
    assert ((target.answer or {})["tool_calls"], target.finish_reason) == ([CALL], "tool_calls")
    assert target.scores.get().value == 0.5
