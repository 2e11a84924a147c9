"""An answer that violates its request's schema is passed through, with a header for the client and a note in the
record."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

import openai
import pytest

from gateway.contract import checker_process
from gateway.contract.checker_process import _REASON_SECONDS, CHECK_SECONDS, CheckTooLongError
from gateway.contract.complexity import is_cheap
from gateway.contract.lanes import check_lanes
from gateway.pipeline import contract
from tests.fakes import scripted as play
from tests.gateway.conftest import Scripted
from tests.gateway.wire import body
from tests.tables.cases import tabled
from tests.waiting import TIMEOUT_SECONDS

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "ages": {"type": "array", "items": {"type": "integer"}}},
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module", autouse=True)
def no_process_left() -> Iterator[None]:
    yield
    check_lanes.close()


@pytest.fixture(autouse=True)
def long_time_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Raises the time limits of checks, so that none times out on a busy machine."""
    for name in ("CHECK_SECONDS", "_REASON_SECONDS", "_QUEUE_SECONDS", "_START_SECONDS"):
        monkeypatch.setattr(checker_process, name, TIMEOUT_SECONDS)


PROJECT = UUID(int=1)
HEADER = "x-output-contract-violation"


def asking(schema: Any = SCHEMA, **fields: Any) -> dict[str, Any]:
    return body(response_format={"type": "json_schema", "json_schema": {"name": "person", "schema": schema}}, **fields)


VALID = '{"name": "Ada", "ages": [3, 4]}'


@tabled
def test_answer__violates_the_schema__is_passed_through_and_reported(
    scripted: Scripted, text: str, reason: str
) -> None:
    gateway, _ = scripted(play.answer(text))

    response = gateway.post(asking())

    assert (response.status_code, response.headers[HEADER]) == (200, "true")
    assert response.json()["choices"][0]["message"]["content"] == text
    record = gateway.record(response)
    assert (record.contract_violation, record.attributes[contract.VIOLATION]) == (True, reason)


def test_answer__keeps_to_the_schema__is_not_marked(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer(VALID))

    response = gateway.post(asking())

    assert HEADER not in response.headers
    assert gateway.record(response).contract_violation is False


def test_answer__of_several__one_breaks_the_schema(scripted: Scripted) -> None:
    choices = [
        {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for index, text in enumerate([VALID, "{}"])
    ]
    gateway, _ = scripted(play.answer(choices=choices))

    response = gateway.post(asking(n=2))

    assert response.headers[HEADER] == "true"
    assert gateway.record(response).attributes[contract.VIOLATION] == "choices[1]: #/required fails"


def test_tool_call__under_a_schema__is_no_violation(scripted: Scripted) -> None:
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    gateway, _ = scripted(play.answer(choices=[{"index": 0, "message": message, "finish_reason": "tool_calls"}]))

    assert HEADER not in gateway.post(asking()).headers


@pytest.mark.parametrize(("text", "broken"), [(VALID, False), ('{"name": 5, "ages": [1]}', True)])
def test_stream__is_held_to_the_schema__and_its_last_chunk_says_so(scripted: Scripted, text: str, broken: bool) -> None:
    gateway, _ = scripted(play.answer(text))
    request = asking()

    with gateway.openai().chat.completions.create(
        model=request["model"], messages=request["messages"], response_format=request["response_format"], stream=True
    ) as stream:
        chunks = list(stream)
        request_id = stream.response.headers["x-request-id"]

    assert "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == text
    assert [(chunk.model_extra or {}).get("x_output_contract_violation") for chunk in chunks[:-1]] == [None] * (
        len(chunks) - 1
    )
    assert (chunks[-1].model_extra or {}).get("x_output_contract_violation", False) is broken
    assert chunks[-1].usage is not None
    assert gateway.record(request_id).contract_violation is broken


def test_answer__to_a_request_without_schema__is_not_looked_at(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer("not JSON"))
    for response_format in ({"type": "json_object"}, {"type": "text"}):
        assert HEADER not in gateway.post(body(response_format=response_format)).headers


def test_schema__of_a_managed_prompt__holds_too(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer("{}"))
    response_format = {"type": "json_schema", "json_schema": {"name": "person", "schema": SCHEMA}}
    version = {"system_prompt": "Name a person.", "response_format": response_format}
    gateway.service.seeder.call("make_prompt", project_id=gateway.project_id, name="person", versions=[version])

    def ask() -> Any:
        return gateway.post(body(prompt_config="person"))

    response = gateway.service.until(ask, lambda answer: answer.status_code == 200)

    assert response.headers[HEADER] == "true"


@tabled
def test_schema__cannot_be_read__answer_is_left_alone(scripted: Scripted, schema: Any) -> None:
    gateway, _ = scripted(play.answer("anything"))

    response = gateway.post(asking(schema))

    assert (response.status_code, HEADER in response.headers) == (200, False)


def problem_of(schema: Any, content: Any, **message: Any) -> str | None:
    completion = json.dumps({"choices": [{"message": {"content": content, **message}}]}).encode()
    return asyncio.run(contract._problem(PROJECT, json.dumps(schema).encode(), completion, streamed=False))


def test_pattern__that_backtracks_for_ever__is_given_up() -> None:
    assert problem_of({"type": "string", "pattern": "^(a|a)*$"}, json.dumps("a" * 5000 + "!")) is not None


def test_references__within_the_schema__are_followed() -> None:
    tree = {"type": "object", "properties": {"next": {"$ref": "#"}}, "additionalProperties": False}
    assert problem_of(tree, '{"next": {"next": {}}}') is None
    assert problem_of(tree, '{"next": {"other": {}}}') is not None


@pytest.mark.parametrize("content", ["[" * 100_000, '{"name": NaN}', '{"name": 1e999}', '"\\ud800"'])
def test_content__odd__is_judged_and_not_a_failure(content: str) -> None:
    assert problem_of({"type": "object", "required": ["x"]}, content) is not None


def test_large_schema__is_held_against_too() -> None:
    large = {"type": "object", "required": ["x"], "description": "y" * 1_000_000}
    assert problem_of(large, "{}") == "choices[0]: #/required fails"
    assert problem_of(large, '{"x": 1}') is None


def doubling(levels: int) -> dict[str, Any]:
    """Returns a schema that stands for 2 to the power of `levels` schemas when its references are resolved."""
    steps = {f"s{n}": {"anyOf": [{"$ref": f"#/$defs/s{n + 1}"}] * 2} for n in range(levels)}
    return {"$defs": {**steps, f"s{levels}": {"type": "string"}}, "$ref": "#/$defs/s0"}


def test_schema__that_would_take_for_ever__ends_in_time_and_nobody_else_waits(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer("5"))

    response = gateway.post(asking(doubling(60)))

    assert (response.status_code, HEADER in response.headers) == (200, False)
    assert gateway.record(response).attributes[contract.UNCHECKED] == "the check took too long"
    assert gateway.post(asking({"$ref": "#/$defs/n", "$defs": {"n": {"pattern": "^a"}}})).status_code == 200


def test_check__after_one_that_took_too_long__is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as impatient:
        impatient.setattr(checker_process, "CHECK_SECONDS", CHECK_SECONDS)
        with pytest.raises(CheckTooLongError):
            problem_of(doubling(60), "5")
    assert problem_of({"pattern": "^a"}, '"b"') == "choices[0]: #/pattern fails"


def test_schemas__of_one_project_that_explode__cost_another_none_of_its_checks(scripted: Scripted) -> None:
    hostile, _ = scripted(play.answer("5"))
    other, _ = scripted(play.answer('"b"'))
    port = hostile.service.ports[0]

    with ThreadPoolExecutor(8) as threads:
        exploding = [threads.submit(hostile.post, asking(doubling(60 + n)), port=port) for n in range(8)]
        answers = [other.post(asking({"type": "string", "pattern": f"^a{n}"}), port=port) for n in range(8)]
        refused = [future.result() for future in exploding]

    assert [answer.headers.get(HEADER) for answer in answers] == ["true"] * 8
    assert all(contract.UNCHECKED not in other.record(answer).attributes for answer in answers)
    # Answers whose check would take exponential time are passed through unchecked.
    assert [(answer.status_code, HEADER in answer.headers) for answer in refused] == [(200, False)] * 8


def test_violation__whose_place_takes_too_long_to_find__is_reported_without_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checker_process, "_REASON_SECONDS", _REASON_SECONDS)
    assert str(problem_of(doubling(18), "5")).startswith("choices[0]: ")


@pytest.mark.parametrize(
    ("schema", "size", "quick"),
    [
        (SCHEMA, 1000, True),
        (doubling(3), 1000, True),
        (doubling(12), 1000, False),
        ({"properties": {"next": {"$ref": "#"}}}, 10, False),
        ({"$ref": "#/$defs/none"}, 10, False),
        ({"$ref": "http://127.0.0.1:9/other.json"}, 10, False),
        ({"type": "string", "pattern": "^a"}, 10, False),
        ({"uniqueItems": True}, 100_000, False),
        ({"description": "x" * 20_000}, 10, False),
        (17, 10, True),
    ],
)
def test_schema__is_quick_to_check_or_has_to_be_watched(schema: Any, size: int, quick: bool) -> None:
    assert is_cheap(json.dumps(schema).encode(), size) is quick


def test_schema__nested_without_end__has_to_be_watched() -> None:
    assert not is_cheap(b'{"not":' * 2000 + b"{}" + b"}" * 2000, 10)
    assert not is_cheap(b'{"not":' * 100 + b"{}" + b"}" * 100, 10)


PARTS = [{"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}, {"type": "text", "text": '{"name": '}]


def test_content__in_parts__is_their_text() -> None:
    assert problem_of(SCHEMA, [*PARTS, {"type": "text", "text": '"Ada"}'}]) is None
    assert problem_of(SCHEMA, [*PARTS, {"type": "text", "text": "5}"}]) == "choices[0]: #/properties/name/type fails"


@tabled
def test_message__that_is_no_answer__violates_nothing(message: dict[str, Any]) -> None:
    assert problem_of(SCHEMA, **message) is None


def test_large_answer__is_judged_like_a_small_one(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer(json.dumps({"name": "x" * (2 * contract._ON_LOOP_BYTES), "ages": ["old"]})))
    # A busy worker now and then leaves an answer unchecked.
    answer = gateway.service.until(lambda: gateway.post(asking()), lambda given: HEADER in given.headers)
    assert answer.headers[HEADER] == "true"


def test_sdk__parses_what_keeps_to_the_schema(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer(VALID))
    request = asking()
    client: openai.OpenAI = gateway.openai()
    answer = client.chat.completions.create(
        model=request["model"], messages=request["messages"], response_format=request["response_format"]
    )
    assert json.loads(answer.choices[0].message.content or "")["name"] == "Ada"
