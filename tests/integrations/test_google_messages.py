"""Tests messages, results of tools and thought signatures in requests for Gemini."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from tests.integrations.google_requests import (
    FLASH,
    PNG,
    PNG_URL,
    THIRD,
    TOOL,
    USER,
    body_of,
    built,
    calling,
    parts_of,
)

SIGNATURE = base64.b64encode(b"signed").decode()
OTHER_SIGNATURE = base64.b64encode(b"also signed").decode()
DUMMY = "skip_thought_signature_validator"


def answering(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


class TestMessages:
    def test_system__several_at_the_beginning__instruction_in_order(self) -> None:
        two = {"role": "developer", "content": [{"type": "text", "text": "Two."}]}
        body = body_of(messages=[{"role": "system", "content": "One."}, two, USER])
        assert body["systemInstruction"] == {"parts": [{"text": "One."}, {"text": "Two."}]}
        assert len(body["contents"]) == 1

    @pytest.mark.parametrize("role", ["system", "developer"])
    @pytest.mark.parametrize("model", [FLASH, THIRD, "gemma-3-27b-it"])
    def test_system__in_mid_conversation__in_its_place_and_what_was_before_unchanged(
        self, role: str, model: str
    ) -> None:
        before = [{"role": "system", "content": "One."}, USER, {"role": "assistant", "content": "A"}]
        late = {"role": role, "content": "From now on in French."}
        body = body_of(model, messages=[*before, USER, late])
        prefix = body_of(model, messages=before)
        assert body.get("systemInstruction") == prefix.get("systemInstruction")
        assert body["contents"][:2] == prefix["contents"]
        marked = "<system-instruction>\nFrom now on in French.\n</system-instruction>"
        assert body["contents"][2:] == [{"role": "user", "parts": [{"text": "Hi"}, {"text": marked}]}]

    def test_system__between_a_call_and_its_result__behind_the_result(self) -> None:
        late = {"role": "system", "content": "Hurry."}
        _, _, (role, parts) = parts_of(USER, calling(("c1", "f")), late, answering("c1", "x"))
        assert (role, [next(iter(part)) for part in parts]) == ("user", ["functionResponse", "text"])

    @pytest.mark.parametrize("model", [FLASH, THIRD])
    def test_conversation__begins_with_a_call__behind_a_turn_of_the_users(self, model: str) -> None:
        written = parts_of(calling(("c1", "f")), answering("c1", "x"), model=model)
        assert [role for role, _ in written] == ["user", "model", "user"]
        assert written[0][1] == [{"text": "(The beginning of the conversation is left out.)"}]

    def test_conversation__begins_with_an_answer__as_it_is(self) -> None:
        written = parts_of({"role": "assistant", "content": "A"}, USER)
        assert written == [("model", [{"text": "A"}]), ("user", [{"text": "Hi"}])]

    @pytest.mark.parametrize("role", ["user", "assistant", "system"])
    def test_name__of_who_speaks__dropped_and_named_once(self, role: str) -> None:
        messages = [USER, {"role": role, "content": "a", "name": "ada"}, {**USER, "name": "bob"}]
        assert [warning.partition(":")[0] for warning in built(messages=messages).warnings] == ["messages.name"]

    def test_name__of_a_function__no_loss(self) -> None:
        result = {**answering("c1", "x"), "name": "f"}
        assert built(messages=[USER, calling(("c1", "f")), result]).warnings == ()

    @pytest.mark.parametrize("contents", [[], [""], [[{"type": "text", "text": ""}]], [[]]])
    @pytest.mark.parametrize("vertex", [False, True])
    def test_system__the_user_turn_is_empty__stays_an_instruction(self, contents: list[Any], vertex: bool) -> None:
        messages = [{"role": "system", "content": "Greet."}, *({"role": "user", "content": text} for text in contents)]
        assert body_of(messages=messages, vertex=vertex) == {
            "contents": [{"role": "user", "parts": [{"text": ""}]}],
            "systemInstruction": {"parts": [{"text": "Greet."}]},
        }

    def test_system__alone_at_a_model_without_instructions__sent_as_the_user(self) -> None:
        body = body_of("gemma-3-27b-it", messages=[{"role": "system", "content": "Greet."}])
        assert body == {"contents": [{"role": "user", "parts": [{"text": "Greet."}]}]}

    @pytest.mark.parametrize("first", ["user", "assistant"])
    def test_system__model_without_instructions__comes_first(self, first: str) -> None:
        messages = [{"role": "system", "content": "Be brief."}, {"role": first, "content": "Hi"}]
        body = body_of("gemma-3-27b-it", messages=messages)
        assert "systemInstruction" not in body
        texts = [part["text"] for content in body["contents"] for part in content["parts"]]
        assert (body["contents"][0]["role"], texts) == ("user", ["Be brief.", "Hi"])

    def test_neighbours__of_one_role__one_content(self) -> None:
        answer = {"role": "assistant", "content": "A"}
        assert parts_of(USER, USER, answer, answer, USER) == [
            ("user", [{"text": "Hi"}, {"text": "Hi"}]),
            ("model", [{"text": "A"}, {"text": "A"}]),
            ("user", [{"text": "Hi"}]),
        ]

    def test_empty_texts__left_out(self) -> None:
        content = [{"type": "text", "text": ""}, {"type": "text", "text": "x"}]
        assert parts_of({"role": "user", "content": content}, {"role": "assistant", "content": ""}) == [
            ("user", [{"text": "x"}])
        ]

    def test_cache_control__ignored_silently(self) -> None:
        markers = {"cache_control": {"type": "ephemeral"}, "prompt_cache_breakpoint": {"type": "ephemeral"}}
        content = [{"type": "text", "text": "x", **markers}]
        request = built(
            messages=[{"role": "user", "content": content}], tools=[{**TOOL, "cache_control": {"type": "e"}}]
        )
        assert b"cache" not in request.body
        assert request.warnings == ()


class TestResults:
    @pytest.mark.parametrize(
        ("content", "more", "response"),
        [
            ("18 °C", {}, {"result": "18 °C"}),
            ('{"t": 18}', {}, {"t": 18}),
            ('{"t": broken', {}, {"result": '{"t": broken'}),
            ("[1, 2]", {}, {"result": "[1, 2]"}),
            ("", {}, {}),
            ("no such city", {"is_error": True}, {"error": "no such city"}),
            ([{"type": "text", "text": "a"}, {"type": "text", "text": "b"}], {}, {"result": "a\nb"}),
        ],
    )
    def test_result__any_content__an_object(self, content: Any, more: dict[str, Any], response: dict[str, Any]) -> None:
        _, _, (_, (part,)) = parts_of(USER, calling(("c1", "f")), answering("c1", content, **more))
        expected = response or {"result": ""}
        assert part == {"functionResponse": {"name": "f", "id": "c1", "response": expected}}

    def test_results__of_parallel_calls__one_content_in_order(self) -> None:
        _, (_, calls), (role, results) = parts_of(
            USER, calling(("c1", "f"), ("c2", "f")), answering("c1", "one"), answering("c2", "two"), USER
        )
        assert [part["functionCall"]["id"] for part in calls] == ["c1", "c2"]
        assert role == "user"
        assert [part["functionResponse"]["response"] for part in results[:2]] == [{"result": "one"}, {"result": "two"}]
        assert results[2] == {"text": "Hi"}

    def test_results__in_another_order__in_that_of_their_calls(self) -> None:
        _, _, (_, parts) = parts_of(
            USER, calling(("c1", "f"), ("c2", "f")), answering("c2", "two"), answering("c1", "one"), answering("?", "x")
        )
        assert [part["functionResponse"]["response"]["result"] for part in parts] == ["one", "two", "x"]

    @pytest.mark.parametrize(
        ("model", "vertex", "sent"),
        [(FLASH, False, True), (FLASH, True, False), (THIRD, False, True), (THIRD, True, True)],
    )
    def test_ids__where_google_takes_them__sent(self, model: str, vertex: bool, sent: bool) -> None:
        _, (_, (call,)), (_, (result,)) = parts_of(
            USER, calling(("c1", "f")), answering("c1", "x"), model=model, vertex=vertex
        )
        assert ("id" in call["functionCall"], "id" in result["functionResponse"]) == (sent, sent)

    IMAGE = {"type": "image_url", "image_url": {"url": PNG_URL}}
    INLINE = {"inlineData": {"mimeType": "image/png", "data": PNG}}

    def test_image__third_generation__inside_the_result(self) -> None:
        content = [{"type": "text", "text": "here"}, self.IMAGE]
        _, _, (_, (part,)) = parts_of(USER, calling(("c1", "f")), answering("c1", content), model=THIRD)
        assert part["functionResponse"]["parts"] == [self.INLINE]
        assert part["functionResponse"]["response"] == {"result": "here"}

    def test_image__before_the_third__behind_all_results(self) -> None:
        calls = calling(("c1", "f"), ("c2", "f"))
        _, _, (_, parts) = parts_of(USER, calls, answering("c1", [self.IMAGE]), answering("c2", "x"), USER)
        assert ["functionResponse" in part for part in parts] == [True, True, False, False]
        assert parts[2:] == [self.INLINE, {"text": "Hi"}]
        assert parts[0]["functionResponse"]["response"] == {}

    def test_sound__that_no_function_may_return__beside_the_result(self) -> None:
        sound = {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "wav"}}
        _, _, (_, parts) = parts_of(USER, calling(("c1", "f")), answering("c1", [sound]), model=THIRD)
        assert parts[1] == {"inlineData": {"mimeType": "audio/wav", "data": "AAAA"}}


class TestSignatures:
    @staticmethod
    def detail(data: str, belongs_to: str = "", **more: Any) -> dict[str, Any]:
        return {"type": "reasoning.encrypted", "data": data, "format": "google-gemini-v1", "id": belongs_to, **more}

    @staticmethod
    def model_parts(message: dict[str, Any], model: str = THIRD) -> list[dict[str, Any]]:
        return parts_of(USER, message, model=model)[1][1]

    def test_call__signed_in_extra_content__on_the_call(self) -> None:
        message = calling(("c1", "f"), ("c2", "f"))
        message["tool_calls"][0]["extra_content"] = {"google": {"thought_signature": SIGNATURE}}
        first, second = self.model_parts(message)
        assert first["thoughtSignature"] == SIGNATURE
        assert "thoughtSignature" not in second

    def test_call__signed_in_details__on_the_call_named(self) -> None:
        details = [self.detail(OTHER_SIGNATURE, "c2"), self.detail(SIGNATURE, "c1")]
        first, second = self.model_parts(calling(("c1", "f"), ("c2", "f"), reasoning_details=details))
        assert (first["thoughtSignature"], second["thoughtSignature"]) == (SIGNATURE, OTHER_SIGNATURE)

    def test_call__signed_in_a_detail_without_id__on_the_first(self) -> None:
        text, call = self.model_parts(calling(("c1", "f"), content="Wait.", reasoning_details=[self.detail(SIGNATURE)]))
        assert text == {"text": "Wait."}
        assert call["thoughtSignature"] == SIGNATURE

    @pytest.mark.parametrize(
        ("model", "signed"),
        [(THIRD, True), ("gemini-flash-latest", True), ("gemini-2.5-pro", False), ("gemma-3", False)],
    )
    def test_call__of_another_vendor__passes_the_third_generations_check(self, model: str, signed: bool) -> None:
        foreign = {"type": "reasoning.text", "text": "t", "signature": "Zm9v", "format": "anthropic-claude-v1"}
        first, second = self.model_parts(calling(("c1", "f"), ("c2", "f"), reasoning_details=[foreign]), model)
        assert first.get("thoughtSignature") == (DUMMY if signed else None)
        assert "thoughtSignature" not in second

    @pytest.mark.parametrize(
        ("belongs_to", "parts"),
        [
            ("content:0:6", [("Hello!", SIGNATURE)]),
            ("content:2:6", [("He", None), ("llo!", SIGNATURE)]),
            ("content:0:2", [("He", SIGNATURE), ("llo!", None)]),
            ("content:6:6", [("Hello!", None), ("", SIGNATURE)]),
            ("content:4:99", [("Hell", None), ("o!", SIGNATURE)]),
            ("content:90:99", [("Hello!", None), ("", SIGNATURE)]),
            ("", [("Hello!", SIGNATURE)]),
        ],
    )
    def test_text__signed__on_its_stretch(self, belongs_to: str, parts: list[tuple[str, str | None]]) -> None:
        message = {
            "role": "assistant",
            "content": "Hello!",
            "reasoning_details": [self.detail(SIGNATURE, belongs_to)],
        }
        sent_parts = self.model_parts(message)
        assert [(part["text"], part.get("thoughtSignature")) for part in sent_parts] == parts

    def test_text__none_but_signed__empty_part(self) -> None:
        message = {"role": "assistant", "content": None, "reasoning_details": [self.detail(SIGNATURE, "content:0:0")]}
        assert self.model_parts(message) == [{"text": "", "thoughtSignature": SIGNATURE}]

    def test_thought__signed__in_front(self) -> None:
        thought = {"type": "reasoning.text", "text": "Hm", "signature": SIGNATURE, "format": "google-gemini-v1"}
        message = {"role": "assistant", "content": "A", "reasoning_details": [thought]}
        assert self.model_parts(message) == [
            {"text": "Hm", "thought": True, "thoughtSignature": SIGNATURE},
            {"text": "A"},
        ]

    def test_thoughts__unsigned_text__not_sent(self) -> None:
        message = {"role": "assistant", "content": "A", "reasoning_content": "Hm"}
        assert self.model_parts(message) == [{"text": "A"}]

    def test_image__made_by_the_model__comes_back_signed(self) -> None:
        image = {"type": "image_url", "image_url": {"url": PNG_URL}, "index": 0}
        message = {
            "role": "assistant",
            "content": "Look",
            "images": [image],
            "reasoning_details": [self.detail(SIGNATURE, "image:0")],
        }
        assert self.model_parts(message) == [
            {"text": "Look"},
            {"inlineData": {"mimeType": "image/png", "data": PNG}, "thoughtSignature": SIGNATURE},
        ]
