"""Tests what the fakes of Gemini refuse, as the official SDK sees it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from google.genai import Client, errors, types
from google.oauth2.credentials import Credentials as Token

from tests.fakes.dialects.google import FAKE, VERTEX_FAKE, GoogleFake
from tests.fakes.dialects.server import DialectServer, answer_with
from tests.fakes.dialects.story import Story
from tests.tables.cases import stored, tabled

Json = dict[str, Any]
OBJECT: Json = {"type": "OBJECT", "properties": {"city": {"type": "STRING"}}}
NEWER, OLDER = "gemini-3-flash-preview", "gemini-2.5-flash"


def turn(role: str, *parts: Json) -> Json:
    return {"role": role, "parts": list(parts)}


def function(name: str = "weather", **fields: Any) -> Json:
    return {"functionDeclarations": [{"name": name, **fields}]}


USER = turn("user", {"text": "Hello"})
SEARCH: Json = {"googleSearch": {}}
ANY: Json = {"mode": "ANY", "allowedFunctionNames": ["weather"]}
# By rule: what is changed in a request that Google takes, and a part of the error.
REFUSED: dict[str, list[tuple[Json, str]]] = stored(__file__, "REFUSED")
REFUSED_AT_GEMINI: dict[str, list[tuple[Json, str]]] = {
    "built-in tool that is not enabled": [({"tools": [SEARCH, function()]}, "include_server_side_tool_invocations")],
    "unknown field": [({"tools": [{"enterpriseWebSearch": {}}]}, "\"enterpriseWebSearch\" at 'tools[0]'")],
}
REFUSED_AT_VERTEX: dict[str, list[tuple[Json, str]]] = stored(__file__, "REFUSED_AT_VERTEX")
CASES = [
    (fake, rule, change, words)
    for fake, more in ((FAKE, REFUSED_AT_GEMINI), (VERTEX_FAKE, REFUSED_AT_VERTEX))
    for rule, cases in [*REFUSED.items(), *more.items()]
    for change, words in cases
]


@pytest.fixture(scope="module")
def clients(server: DialectServer) -> Iterator[dict[str, Client]]:
    with sdk(server, FAKE) as gemini, sdk(server, VERTEX_FAKE) as vertex:
        yield {"google": gemini, "google_vertex": vertex}


def sdk(server: DialectServer, fake: GoogleFake) -> Client:
    server.play(fake.provider, answer_with(fake, Story(text="ok")))
    access = fake.credentials(server.base_url(fake.provider))
    options = types.HttpOptions(base_url=access.base_url, retry_options=types.HttpRetryOptions(attempts=1))
    if fake is FAKE:
        return Client(api_key=access.secret, http_options=options)
    return Client(
        vertexai=True,
        project=access.extra["project"],
        location=access.extra["location"],
        credentials=Token(token=access.secret),  # type: ignore[no-untyped-call]  # google-auth leaves it unannotated
        http_options=options,
    )


def ask(client: Client, change: Json) -> types.GenerateContentResponse:
    """Sends the body as it is: the SDK would not let all of them pass."""
    body = {"contents": [USER], **change}
    options = types.HttpOptions(extra_body={name: value for name, value in body.items() if name != "model"})
    config = types.GenerateContentConfig(http_options=options)
    return client.models.generate_content(model=change.get("model", NEWER), contents="replaced", config=config)


@pytest.mark.parametrize("provider", ["google", "google_vertex"])
@tabled
def test_request__that_the_vendor_takes__answered(clients: dict[str, Client], provider: str, change: Json) -> None:
    assert ask(clients[provider], change).text == "ok"


@pytest.mark.parametrize(
    ("fake", "rule", "change", "words"),
    CASES,
    ids=[f"{fake.provider}-{rule}-{words}" for fake, rule, _, words in CASES],
)
def test_request__that_the_vendor_refuses__raised_by_the_sdk_in_its_words(
    clients: dict[str, Client], fake: GoogleFake, rule: str, change: Json, words: str
) -> None:
    with pytest.raises(errors.ClientError) as raised:
        ask(clients[fake.provider], change)
    assert words in str(raised.value.message)
    assert (raised.value.code, raised.value.status) == (400, "INVALID_ARGUMENT")
    assert any(one.name == rule for one in fake.rules.rules)
