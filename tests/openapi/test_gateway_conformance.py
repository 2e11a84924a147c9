"""schemathesis sends the requests that the document allows to the gateway and the agent's chat, which Channels
serves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings

from core.openapi.views import document
from tests.fakes.scripted import ScriptedServer, answer
from tests.gateway.conftest import LONG_TIMEOUTS
from tests.gateway.service import Gateway, GatewayService
from tests.openapi.checks import CHECKS, EXAMPLES
from tests.waiting import TIMEOUT_SECONDS

schema = schemathesis.openapi.from_dict(document()).include(
    path_regex="^/api/(gateway/|agent/chat$|llm/prompts/{name})"
)
schema.config.phases.update(phases=["examples", "fuzzing"])


@pytest.fixture(scope="module")
def served() -> Iterator[Gateway]:
    """A project whose only provider always answers."""
    with ScriptedServer() as upstream, GatewayService(workers=1, settings=LONG_TIMEOUTS) as service:
        upstream.play("plain", answer())
        yield service.new_project(
            base_urls={"openai": upstream.base_url("plain")}, routing={"agent_model": "openai/gpt-4o"}
        )
        assert "Traceback" not in service.log.read_text(errors="replace")


@schema.parametrize()
@settings(
    max_examples=10 * EXAMPLES,
    derandomize=True,
    database=None,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_gateway__any_documented_request__answers_as_described(case: schemathesis.Case[Any], served: Gateway) -> None:
    if isinstance(case.body, dict) and "model" in case.body and len(repr(case.body)) % 2:
        # Half of the requests name a model that exists.
        case.body["model"] = "gpt-4o-mini"
        case.body["stream"] = False
    headers = {"Authorization": f"Bearer {served.key}", "X-Project-Id": served.project_id}
    answer = case.call(base_url=served.service.base_url(), headers=headers, timeout=TIMEOUT_SECONDS)
    case.validate_response(answer, checks=CHECKS, headers=headers)
