"""Two-step tool loops by clients on their default settings, over reasoning models of four vendors.

The vendors are strict fakes: what a real one would refuse ends the loop with its refusal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache

import pytest

from tests.clients.clients import CLIENTS, TOOLS, Client
from tests.clients.conftest import Results, prompt_of, run
from tests.fakes.dialects.registry import FAKES
from tests.fakes.dialects.server import DialectServer, answer_with, read_request
from tests.fakes.dialects.story import Call, ReadRequest, Story
from tests.fakes.scripted import Step
from tests.fakes.upstream import Connection, Received
from tests.gateway.service import Gateway, GatewayService
from tests.gateway.stage import integration_of
from tests.night import cases

# The providers of the models, all of which reason unless told otherwise.
MODELS = {
    "gpt-5": "openai",
    "gpt-5.5": "openai",
    "claude-sonnet-5": "anthropic",
    "gemini-3-pro": "google",
    "openai_compatible/qwen3": "openai_compatible",
}
APIS = {
    "node_openai": ("chat", "responses"),
    "node_ai_sdk": ("responses", "compatible", "messages"),
    "langchain": ("chat", "responses", "messages"),
}
# OpenAI takes no functions for this model in chat completions, unless reasoning is switched off.
NOT_BY_CHAT = "gpt-5.5"


def cases_of(client: Client, model: str) -> list[str]:
    apis = [api for api in APIS[client.name] if model != NOT_BY_CHAT or api not in ("chat", "compatible")]
    return [f"{api}.{case}" for api in apis for case in TOOLS]


# By day each client runs once, and each provider is met once.
BY_DAY = {
    ("node_openai", "gpt-5"),
    ("node_ai_sdk", "claude-sonnet-5"),
    ("langchain", "gemini-3-pro"),
    ("node_openai", "openai_compatible/qwen3"),
}
EVERY_RUN = [(client, model) for client in CLIENTS if client.name in APIS for model in MODELS]
RUNS = cases(EVERY_RUN, by_day=[(client, model) for client, model in EVERY_RUN if (client.name, model) in BY_DAY])
LOOPS = [(client, model, name) for client, model in RUNS for name in cases_of(client, model)]
REPORT = "Take a hat."
Loops = Callable[[Client, str], tuple[Results, list[ReadRequest]]]


@dataclass(frozen=True)
class Vendors:
    gateway: Gateway
    asked: dict[str, list[ReadRequest]]


def thinking(provider: str, asked: list[ReadRequest]) -> Step:
    fake = FAKES[provider]
    call = Call("" if provider == "google" else "call_7f", "get_weather", {"city": "Rome"})
    first = Story("I look.", reasoning="The sky tells.", signature="c2lnbmVk", calls=(call,), finish="tool_calls")

    async def step(received: Received, connection: Connection) -> None:
        try:
            asked.append(read_request(fake, received))
            story = Story(text=REPORT) if asked[-1].results else first
        except AssertionError:
            # What the vendor would refuse gets its refusal, whatever the story.
            story = first
        await answer_with(fake, story)(received, connection)

    return step


@pytest.fixture(scope="module")
def vendors(service: GatewayService) -> Iterator[Vendors]:
    asked: dict[str, list[ReadRequest]] = {provider: [] for provider in MODELS.values()}
    with DialectServer() as server:
        for provider, requests in asked.items():
            server.play(provider, thinking(provider, requests))
        rows = [integration_of(FAKES[provider], server.base_url(provider)) for provider in asked]
        yield Vendors(service.new_project(integrations=rows), asked)


@pytest.fixture(scope="module")
def loops(installed: None, vendors: Vendors, tmp_path_factory: pytest.TempPathFactory) -> Loops:
    @cache
    def found(client: Client, model: str) -> tuple[Results, list[ReadRequest]]:
        asked = vendors.asked[MODELS[model]]
        before = len(asked)
        folder = tmp_path_factory.mktemp(client.name)
        results = run(client, vendors.gateway, folder, cases_of(client, model), model=model)
        return results, asked[before:]

    return found


@pytest.mark.parametrize(
    ("client", "model", "name"), LOOPS, ids=[f"{client.name}-{model}-{name}" for client, model, name in LOOPS]
)
def test_loop__on_default_settings__ends_with_the_answer_to_the_result(
    loops: Loops, client: Client, model: str, name: str
) -> None:
    results, asked = loops(client, model)
    result, (api, case) = results[name], name.split(".")
    prompt = ("user", prompt_of(client, api, case))

    assert "traceback" not in result, result["traceback"]
    assert (result["cities"], result["text"]) == (["Rome"], REPORT)
    first, second = [request for request in asked if prompt in request.turns]
    assert first.tools == ("get_weather",)
    assert [text for _, text in second.results] == ["sunny in Rome"]
    assert first.stream == second.stream == (case == "tools_streamed")
