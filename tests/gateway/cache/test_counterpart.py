"""The key that an arm asks for the other one is the key under which the other one stores its answer."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from gateway.pipeline.cached import answer_key
from gateway.pipeline.context import RequestContext, RequestState
from gateway.pipeline.guard_input import guard_input
from gateway.pipeline.marked_documents import without_document_marks
from gateway.pipeline.prompt import with_prompt
from gateway.pipeline.run import counterpart_key
from gateway.pipeline.select import select
from gateway.project_settings.guardrails import GuardrailSettings, TrustMode
from gateway.project_settings.settings import ProjectSettings
from gateway.protocol.headers import read_headers
from gateway.protocol.wire import LazyFields, decode_request
from gateway.snapshot.project import ProjectSnapshot
from gateway.snapshot.prompts import RunningRollout
from integrations.health.monitor import HealthMonitor
from integrations.providers.base import Credentials
from rollouts.allocation import AllocationType
from tests.gateway.prompted import KEY, PROJECT, ROLLOUT, SCHEMA, TOOL, a_prompt, a_version

MODELS = ("openai/gpt-4o", "groq/llama-3.3-70b-versatile")
SETTINGS = [
    ProjectSettings(preferred_models=MODELS),
    ProjectSettings(
        preferred_models=MODELS, guardrails=GuardrailSettings(trust_mode=TrustMode.ENFORCE, spotlighting_enabled=True)
    ),
]
VERSIONS = st.fixed_dictionaries(
    {"text": st.sampled_from(["Be kind.", "Dear {{name}}.", "Dear {{name}} of {{place}}."])},
    optional={
        "model": st.sampled_from(["", *MODELS]),
        "temperature": st.sampled_from([0.0, 1.0]),
        "max_tokens": st.integers(1, 9),
        "tools": st.just([TOOL]),
        "response_format": st.just(SCHEMA),
    },
)
MESSAGES = st.lists(
    st.fixed_dictionaries({"role": st.just("user"), "content": st.text()})
    | st.fixed_dictionaries({"role": st.just("tool"), "content": st.text(), "tool_call_id": st.just("call_1")})
    | st.builds(
        lambda text: {"role": "user", "content": [{"type": "text", "text": text, "trust": "untrusted"}]}, st.text()
    ),
    min_size=1,
    max_size=3,
)
REQUESTS = st.fixed_dictionaries(
    {
        "model": st.sampled_from(["auto", *MODELS]),
        "messages": MESSAGES,
        "prompt_variables": st.fixed_dictionaries(
            {"name": st.sampled_from(["Ann", "Bob"]), "place": st.sampled_from(["Oslo", "Rome"])}
        ),
    },
    optional={
        "temperature": st.sampled_from([0.0, 1.0]),
        "stream": st.booleans(),
        "seed": st.integers(0, 3),
        "provider": st.sampled_from([{"order": ["groq"]}, {"only": ["openai", "groq"]}, {"sort": "latency"}]),
    },
)


class Arm:
    """A request as one arm gets it: the context before and after its prompt, its state and its first choice."""

    def __init__(self, fields: dict[str, Any], weight: int, versions: tuple[Any, Any], settings: Any) -> None:
        baseline, target = (
            replace(
                a_version(content["text"], **{name: value for name, value in content.items() if name != "text"}),
                number=number,
            )
            for number, content in enumerate(versions, start=1)
        )
        rollout = RunningRollout(ROLLOUT, 1, weight, AllocationType.RANDOM, False, baseline, target)
        prompt = a_prompt(baseline, names=frozenset({"name", "place"}), rollout=rollout)
        credentials = {name: Credentials(number, name, "", "key") for number, name in enumerate(("openai", "groq"), 1)}
        snapshot = ProjectSnapshot(PROJECT, str(PROJECT), {}, credentials, {}, settings, 1, {prompt.name: prompt})
        body = json.dumps({**fields, "prompt_config": prompt.name}).encode()
        request = decode_request(body)
        self.state = RequestState("r-1", 0, 0.0, snapshot, KEY, read_headers([]), body, request)
        self.asked = RequestContext(snapshot, self.state.headers, body, request, LazyFields(body))
        self.health = HealthMonitor("redis://127.0.0.1:1/0", clock=lambda: 1_700_000_000.0)

    async def keys(self) -> tuple[str, str]:
        """Returns the keys of its own answer and of the other arm's."""
        context = with_prompt(self.asked, self.state)
        if context.snapshot.settings.guardrails.is_on:
            context = await guard_input(context, self.state)
        context = without_document_marks(context)
        first = select(context, self.health, self.state.request_id)[0]
        own = answer_key(context, self.state, first, self.state.prompt.version)
        return own, counterpart_key(self.health, self.state, self.asked, first)


@given(fields=REQUESTS, versions=st.tuples(VERSIONS, VERSIONS), settings=st.sampled_from(SETTINGS))
async def test_counterpart__of_each_arm__is_the_key_of_the_other(
    fields: dict[str, Any], versions: tuple[Any, Any], settings: ProjectSettings
) -> None:
    baseline, others_of_baseline = await Arm(fields, 0, versions, settings).keys()
    target, others_of_target = await Arm(fields, 100, versions, settings).keys()

    assert (others_of_baseline, others_of_target) == (target, baseline)
    assert target != baseline
