"""What becomes of a request for Gemini, parameter by parameter."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from msgspec.structs import replace

from integrations.providers.base import Media, UpstreamRequest
from integrations.providers.errors import UnsupportedParameterError
from integrations.providers.google import GEMINI, VERTEX
from tests.integrations.exchanges import chat_request, credentials

USER = {"role": "user", "content": "Hi"}
FLASH = "gemini-2.5-flash"
THIRD = "gemini-3-flash-preview"
PNG = "iVBORw0KGgo="
PNG_URL = f"data:image/png;base64,{PNG}"
FUNCTION: dict[str, Any] = {"name": "f", "parameters": {"type": "object", "properties": {}}}
TOOL = {"type": "function", "function": FUNCTION}
SIGNATURE = base64.b64encode(b"signed").decode()
OTHER_SIGNATURE = base64.b64encode(b"also signed").decode()
DUMMY = "skip_thought_signature_validator"


def built(
    model: str = FLASH, *, media: dict[str, Media] | None = None, vertex: bool = False, **fields: Any
) -> UpstreamRequest:
    request = replace(chat_request(model, **{"messages": [USER], **fields}), media=media or {})
    adapter = VERTEX if vertex else GEMINI
    access = credentials("google_vertex", project="p", location="europe-west4") if vertex else credentials("google")
    return adapter.build_request(request, access)


def body_of(model: str = FLASH, **fields: Any) -> dict[str, Any]:
    decoded: dict[str, Any] = json.loads(built(model, **fields).body)
    return decoded


def config_of(model: str = FLASH, **fields: Any) -> dict[str, Any]:
    config: dict[str, Any] = body_of(model, **fields).get("generationConfig", {})
    return config


def parts_of(*messages: dict[str, Any], model: str = FLASH, **fields: Any) -> list[tuple[str, list[dict[str, Any]]]]:
    contents = body_of(model, messages=list(messages), **fields)["contents"]
    return [(content["role"], content["parts"]) for content in contents]


def calling(*calls: tuple[str, str], content: str | None = None, **more: Any) -> dict[str, Any]:
    """An assistant's message that calls the functions by (id, name)."""
    made = [{"id": i, "type": "function", "function": {"name": name, "arguments": '{"a": 1}'}} for i, name in calls]
    return {"role": "assistant", "content": content, "tool_calls": made, **more}


def test_messages__nothing_between_two_of_the_users__one_turn() -> None:
    called = [calling(("c", "f")), {"role": "tool", "tool_call_id": "c", "content": "ok"}]
    silent = {"role": "assistant", "content": "", "reasoning_content": "hm"}
    made = parts_of({"role": "user", "content": "a"}, *called, silent, {"role": "user", "content": "b"})
    assert [role for role, _ in made] == ["user", "model", "user"]
    assert made[-1][1][-1] == {"text": "b"}


def answering(call_id: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": content, **more}


def test_parameters__all_that_google_has__under_its_names() -> None:
    built_now = built(
        temperature=0.5,
        top_p=0.9,
        top_k=40,
        n=2,
        seed=7,
        presence_penalty=0.1,
        frequency_penalty=0.2,
        max_completion_tokens=100,
        max_tokens=50,
        stop="END",
        logprobs=True,
        top_logprobs=3,
    )
    assert json.loads(built_now.body)["generationConfig"] == {
        "temperature": 0.5,
        "topP": 0.9,
        "topK": 40,
        "candidateCount": 2,
        "seed": 7,
        "presencePenalty": 0.1,
        "frequencyPenalty": 0.2,
        "maxOutputTokens": 100,
        "stopSequences": ["END"],
        "responseLogprobs": True,
        "logprobs": 3,
    }
    assert built_now.warnings == ()


def test_parameters__none_given__no_config() -> None:
    assert body_of() == {"contents": [{"role": "user", "parts": [{"text": "Hi"}]}]}


@pytest.mark.parametrize("name", ["user", "metadata", "store", "logit_bias", "verbosity", "prompt_cache_key"])
def test_parameters__without_counterpart__dropped_and_named(name: str) -> None:
    fields: dict[str, Any] = {name: {"a": 1} if name in ("metadata", "logit_bias") else "x"}
    request = built(**fields)
    assert [warning.partition(":")[0] for warning in request.warnings] == [name]
    assert json.loads(request.body) == body_of()


def test_stop__more_than_google_takes__refused() -> None:
    with pytest.raises(UnsupportedParameterError, match="at most 5"):
        built(stop=list("abcdef"))


def test_seed__of_64_bits__folded_and_stable() -> None:
    folded = config_of(seed=2**40 + 5)["seed"]
    assert 0 <= folded < 2**31
    assert folded == config_of(seed=2**40 + 5)["seed"]


@pytest.mark.parametrize(
    "wish", [{"modalities": ["text", "audio"]}, {"generationConfig": {"response_modalities": ["AUDIO"]}}]
)
def test_modalities__audio__refused(wish: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedParameterError, match="modalities"):
        built(**wish)


def test_modalities__image__asked_for() -> None:
    assert config_of(modalities=["text", "image"])["responseModalities"] == ["TEXT", "IMAGE"]


@pytest.mark.parametrize(
    ("tier", "sent"), [("flex", "flex"), ("priority", "priority"), ("auto", None), ("scale", None)]
)
def test_service_tier__where_google_has_it__sent(tier: str, sent: str | None) -> None:
    request = built(service_tier=tier)
    assert json.loads(request.body).get("serviceTier") == sent
    assert bool(request.warnings) is (tier == "scale")


class TestNative:
    def test_generation_config__either_spelling__passes_and_wins(self) -> None:
        config = config_of(
            temperature=0.1, generation_config={"temperature": 0.9, "media_resolution": "MEDIA_RESOLUTION_LOW"}
        )
        assert config == {"temperature": 0.9, "mediaResolution": "MEDIA_RESOLUTION_LOW"}

    def test_config_key_at_the_top__either_spelling__passes(self) -> None:
        assert config_of(speechConfig={"a": 1}, image_config={"aspectRatio": "1:1"}) == {
            "speechConfig": {"a": 1},
            "imageConfig": {"aspectRatio": "1:1"},
        }

    def test_body_fields__either_spelling__pass(self) -> None:
        setting = {"category": "HARM_CATEGORY_HATE_SPEECH", "threshold": "BLOCK_NONE"}
        request = built(safety_settings=[setting], cachedContent="cachedContents/x", labels={"team": "a"})
        body = json.loads(request.body)
        assert (body["safetySettings"], body["cachedContent"], body["labels"]) == (
            [setting],
            "cachedContents/x",
            {"team": "a"},
        )
        assert request.warnings == ()

    def test_thinking_config__native__replaces_the_translated(self) -> None:
        assert config_of(reasoning_effort="high", thinkingConfig={"thinkingBudget": 5}) == {
            "thinkingConfig": {"thinkingBudget": 5}
        }

    def test_extra_body__googles_own_way__unpacked(self) -> None:
        request = built(extra_body={"google": {"thinking_config": {"thinking_budget": 5}, "cached_content": "c"}})
        body = json.loads(request.body)
        assert body["generationConfig"] == {"thinkingConfig": {"thinking_budget": 5}}
        assert body["cachedContent"] == "c"
        assert request.warnings == ()

    def test_schema__native__replaces_the_translated(self) -> None:
        wish = {"type": "json_schema", "json_schema": {"name": "a", "schema": {"type": "object"}}}
        config = config_of(response_format=wish, generationConfig={"responseSchema": {"type": "STRING"}})
        assert config == {"responseMimeType": "application/json", "responseSchema": {"type": "STRING"}}


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

    @pytest.mark.parametrize("role", ["user", "assistant", "system"])
    def test_name__of_who_speaks__dropped_and_named_once(self, role: str) -> None:
        messages = [USER, {"role": role, "content": "a", "name": "ada"}, {**USER, "name": "bob"}]
        assert [warning.partition(":")[0] for warning in built(messages=messages).warnings] == ["messages.name"]

    def test_name__of_a_function__no_loss(self) -> None:
        result = {**answering("c1", "x"), "name": "f"}
        assert built(messages=[USER, calling(("c1", "f")), result]).warnings == ()

    @pytest.mark.parametrize("said", [[], [""], [[{"type": "text", "text": ""}]], [[]]])
    @pytest.mark.parametrize("vertex", [False, True])
    def test_system__the_user_says_nothing__stays_an_instruction(self, said: list[Any], vertex: bool) -> None:
        messages = [{"role": "system", "content": "Greet."}, *({"role": "user", "content": text} for text in said)]
        assert body_of(messages=messages, vertex=vertex) == {
            "contents": [{"role": "user", "parts": [{"text": ""}]}],
            "systemInstruction": {"parts": [{"text": "Greet."}]},
        }

    def test_system__alone_at_a_model_without_instructions__said_by_the_user(self) -> None:
        body = body_of("gemma-3-27b-it", messages=[{"role": "system", "content": "Greet."}])
        assert body == {"contents": [{"role": "user", "parts": [{"text": "Greet."}]}]}

    @pytest.mark.parametrize("first", ["user", "assistant"])
    def test_system__model_without_instructions__said_first(self, first: str) -> None:
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


class TestMedia:
    @staticmethod
    def part(url: str, kind: str = "image_url", **more: Any) -> dict[str, Any]:
        message = {"role": "user", "content": [{"type": kind, kind: {"url": url}}]}
        ((_, (part,)),) = parts_of(message, **more)
        return part

    @pytest.mark.parametrize(
        ("url", "media_type", "data"),
        [
            (PNG_URL, "image/png", PNG),
            (f"data:image/JPG;name=x;base64,{PNG}", "image/jpeg", PNG),
            ("data:,Hello%20you", "text/plain", base64.b64encode(b"Hello you").decode()),
            (f"data:image/png;base64,{PNG[:4]}%0A{PNG[4:]}", "image/png", PNG),
            ("data:image/png;base64,iVBO Rw0K\nGgo=", "image/png", PNG),
        ],
    )
    def test_data_url__any_form__inline(self, url: str, media_type: str, data: str) -> None:
        assert self.part(url) == {"inlineData": {"mimeType": media_type, "data": data}}

    @pytest.mark.parametrize("model", [THIRD, "gemini-4-argon", "gemini-pro-latest"])
    @pytest.mark.parametrize(
        ("detail", "level"),
        [
            ("low", "LOW"),
            ("medium", "MEDIUM"),
            ("high", "HIGH"),
            ("original", "ULTRA_HIGH"),
            ("auto", None),
            ("", None),
        ],
    )
    def test_detail__from_the_third_generation_on__resolution_of_the_part(
        self, model: str, detail: str, level: str | None
    ) -> None:
        picture = {"type": "image_url", "image_url": {"url": PNG_URL, "detail": detail}}
        request = built(model, messages=[{"role": "user", "content": [picture]}])
        (part,) = json.loads(request.body)["contents"][0]["parts"]
        assert part.get("mediaResolution") == ({"level": f"MEDIA_RESOLUTION_{level}"} if level else None)
        assert request.warnings == ()

    @pytest.mark.parametrize(("model", "detail"), [(FLASH, "high"), ("gemma-3-27b-it", "low"), (THIRD, "tomorrow")])
    def test_detail__that_has_no_counterpart__dropped_and_named(self, model: str, detail: str) -> None:
        picture = {"type": "image_url", "image_url": {"url": PNG_URL, "detail": detail}}
        request = built(model, messages=[{"role": "user", "content": [picture, picture]}])
        assert b"mediaResolution" not in request.body
        assert [warning.partition(":")[0] for warning in request.warnings] == ["messages.image_url.detail"]

    @pytest.mark.parametrize("url", ["data:image/png;base64,abcde", "data:image/png;base64"])
    def test_data_url__broken__refused(self, url: str) -> None:
        with pytest.raises(UnsupportedParameterError):
            self.part(url)

    def test_audio_and_file__carried_inside__inline(self) -> None:
        content = [
            {"type": "input_audio", "input_audio": {"data": "AAAA", "format": "mp3"}},
            {"type": "file", "file": {"filename": "a.pdf", "file_data": "data:application/pdf;base64,JVBERg=="}},
        ]
        assert parts_of({"role": "user", "content": content})[0][1] == [
            {"inlineData": {"mimeType": "audio/mp3", "data": "AAAA"}},
            {"inlineData": {"mimeType": "application/pdf", "data": "JVBERg=="}},
        ]

    @pytest.mark.parametrize(
        ("url", "kind", "media_type"),
        [
            ("https://www.youtube.com/watch?v=1", "video_url", "video/mp4"),
            ("https://youtu.be/1", "video_url", "video/mp4"),
            ("https://generativelanguage.googleapis.com/v1beta/files/1", "document_url", "application/pdf"),
            ("https://generativelanguage.googleapis.com/v1beta/files/1", "image_url", None),
            ("gs://bucket/a.PNG", "image_url", "image/png"),
        ],
    )
    @pytest.mark.parametrize("vertex", [False, True])
    def test_address__that_google_reads__by_address(
        self, url: str, kind: str, media_type: str | None, vertex: bool
    ) -> None:
        told = {"fileUri": url, **({"mimeType": media_type} if media_type else {})}
        assert self.part(url, kind, vertex=vertex) == {"fileData": told}

    def test_address__gemini_api__bytes(self) -> None:
        url = "https://example.test/a.png"
        request = chat_request(FLASH, messages=[{"role": "user", "content": [{"type": "image_url", "image_url": url}]}])
        assert GEMINI.needs(request, credentials("google")).media == (url,)
        part = self.part(url, media={url: Media("image/webp", b"abc")})
        assert part == {"inlineData": {"mimeType": "image/webp", "data": "YWJj"}}

    def test_address__not_fetched__refused(self) -> None:
        with pytest.raises(UnsupportedParameterError, match="not fetched"):
            self.part("https://example.test/a.png")

    @pytest.mark.parametrize(
        ("url", "needed"),
        [
            ("https://example.test/a.png?size=1", False),
            ("https://example.test/picture", True),
            ("http://example.test/a.png", True),
        ],
    )
    def test_address__vertex__by_address_where_its_type_shows(self, url: str, needed: bool) -> None:
        message = {"role": "user", "content": [{"type": "image_url", "image_url": {"url": url}}]}
        needs = VERTEX.needs(chat_request(FLASH, messages=[message]), credentials("google_vertex", project="p"))
        assert needs.media == ((url,) if needed else ())
        if not needed:
            assert self.part(url, vertex=True) == {"fileData": {"fileUri": url, "mimeType": "image/png"}}

    @pytest.mark.parametrize("typed", [{}, {"type": "fileData"}])
    def test_part__in_googles_own_words__as_it_is(self, typed: dict[str, str]) -> None:
        """The wire format wants a type of every part: it is the name of what the part holds."""
        native = {"fileData": {"fileUri": "https://youtu.be/1"}, "videoMetadata": {"startOffset": "5s"}}
        message = {"role": "user", "content": [{"type": "text", "text": "Watch."}, {**typed, **native}]}
        assert parts_of(message) == [("user", [{"text": "Watch."}, native])]
        assert not GEMINI.needs(chat_request(FLASH, messages=[message]), credentials("google")).media

    def test_needs__same_file_twice__once(self) -> None:
        part = {"type": "image_url", "image_url": {"url": "https://example.test/a.png"}}
        request = chat_request(FLASH, messages=[{"role": "user", "content": [part, part]}])
        assert len(GEMINI.needs(request, credentials("google")).media) == 1


class TestTools:
    def test_function__declared__with_whole_json_schema(self) -> None:
        schema = {
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/a", "description": "x"}, "const": {"const": "c"}},
            "$defs": {"a": {"type": ["string", "null"]}},
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "additionalProperties": False,
        }
        tool = {"type": "function", "function": {"name": "f", "description": "F", "parameters": schema}}
        assert body_of(tools=[tool])["tools"] == [
            {
                "functionDeclarations": [
                    {
                        "name": "f",
                        "description": "F",
                        "parametersJsonSchema": {
                            "type": "object",
                            "properties": {"a": {"$ref": "#/$defs/a"}, "const": {"enum": ["c"], "type": "string"}},
                            "$defs": {"a": {"type": ["string", "null"]}},
                            "additionalProperties": False,
                        },
                    }
                ]
            }
        ]

    def test_function__of_endless_depth__passed_on(self) -> None:
        schema: dict[str, Any] = {"type": "object"}
        for _ in range(300):
            schema = {"type": "object", "properties": {"a": schema}}
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        assert body_of(tools=[tool])["tools"][0]["functionDeclarations"][0]["parametersJsonSchema"] == schema

    def test_native_declarations__chosen_among(self) -> None:
        native = {"function_declarations": [{"name": "f"}]}
        body = body_of(tools=[native], tool_choice="required")
        assert body["tools"] == [native]
        assert body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}

    def test_function__in_googles_own_schema__kept_so(self) -> None:
        schema = {"type": "OBJECT", "properties": {"a": {"type": "STRING"}}}
        tool = {"type": "function", "function": {"name": "f", "parameters": schema}}
        assert body_of(tools=[tool])["tools"] == [{"functionDeclarations": [{"name": "f", "parameters": schema}]}]

    def test_function__strict__named_in_a_warning(self) -> None:
        tool = {"type": "function", "function": {**FUNCTION, "strict": True}}
        assert "strict" in built(tools=[tool]).warnings[0]

    @pytest.mark.parametrize(
        ("tool", "sent"),
        [
            ({"google_search": {}}, {"google_search": {}}),
            ({"codeExecution": {}}, {"codeExecution": {}}),
            ({"type": "url_context"}, {"urlContext": {}}),
            (
                {"type": "fileSearch", "fileSearchStoreNames": ["x"]},
                {"fileSearch": {"fileSearchStoreNames": ["x"]}},
            ),
        ],
    )
    def test_native_tool__either_spelling__passed_on(self, tool: dict[str, Any], sent: dict[str, Any]) -> None:
        assert body_of(tools=[TOOL, tool])["tools"][1:] == [sent]

    def test_web_search_options__googles_search_once(self) -> None:
        assert body_of(web_search_options={})["tools"] == [{"googleSearch": {}}]
        assert body_of(web_search_options={}, tools=[{"google_search": {}}])["tools"] == [{"google_search": {}}]

    def test_web_search_options__what_is_in_them__named(self) -> None:
        wish = {"search_context_size": "high", "user_location": {"type": "approximate"}}
        assert [warning.partition(":")[0] for warning in built(web_search_options=wish).warnings] == [
            "web_search_options.search_context_size",
            "web_search_options.user_location",
        ]

    def test_unknown_tool__refused(self) -> None:
        with pytest.raises(UnsupportedParameterError, match="web_search_20250305"):
            built(tools=[{"type": "web_search_20250305", "name": "web_search"}])

    @pytest.mark.parametrize(
        ("choice", "config"),
        [
            ("none", {"mode": "NONE"}),
            ("auto", {"mode": "AUTO"}),
            ("required", {"mode": "ANY"}),
            ({"type": "function", "function": {"name": "f"}}, {"mode": "ANY", "allowedFunctionNames": ["f"]}),
            (
                {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [TOOL]}},
                {"mode": "VALIDATED", "allowedFunctionNames": ["f"]},
            ),
            (
                {"type": "allowed_tools", "allowed_tools": {"mode": "required", "tools": [TOOL]}},
                {"mode": "ANY", "allowedFunctionNames": ["f"]},
            ),
        ],
    )
    def test_choice__every_form__as_google_has_it(self, choice: Any, config: dict[str, Any]) -> None:
        assert body_of(tools=[TOOL], tool_choice=choice)["toolConfig"] == {"functionCallingConfig": config}

    def test_choice__no_functions__only_what_needs_none(self) -> None:
        assert "toolConfig" not in body_of(tools=[{"google_search": {}}], tool_choice="auto")
        with pytest.raises(UnsupportedParameterError, match="tool_choice"):
            built(tool_choice="required")

    def test_tool_config__native__wins_and_is_kept(self) -> None:
        native = {"functionCallingConfig": {"mode": "VALIDATED"}, "retrieval_config": {"languageCode": "de"}}
        assert body_of(tools=[TOOL], tool_choice="none", toolConfig=native)["toolConfig"] == {
            "functionCallingConfig": {"mode": "VALIDATED"},
            "retrievalConfig": {"languageCode": "de"},
        }

    @pytest.mark.parametrize(("choice", "mode"), [(None, None), ("auto", "VALIDATED"), ("required", "ANY")])
    @pytest.mark.parametrize("search", [{"tools": [TOOL, {"google_search": {}}]}, {"web_search_options": {}}])
    def test_functions_and_googles_tools__third_generation__shown_what_it_did(
        self, search: dict[str, Any], choice: str | None, mode: str | None
    ) -> None:
        config = body_of(THIRD, **{"tools": [TOOL], **search}, tool_choice=choice)["toolConfig"]
        assert config["includeServerSideToolInvocations"] is True
        assert config.get("functionCallingConfig", {}).get("mode") == mode

    @pytest.mark.parametrize(
        ("model", "vertex", "tools"),
        [
            (FLASH, False, [TOOL, {"google_search": {}}]),
            (THIRD, True, [TOOL, {"google_search": {}}]),
            (THIRD, False, [TOOL]),
            (THIRD, False, [{"google_search": {}}]),
        ],
    )
    def test_functions_or_googles_tools__where_nothing_is_mixed_or_may_be__not_asked_for(
        self, model: str, vertex: bool, tools: list[dict[str, Any]]
    ) -> None:
        assert "toolConfig" not in body_of(model, vertex=vertex, tools=tools)

    def test_parallel_calls__forbidden__named(self) -> None:
        assert "parallel_tool_calls" in built(tools=[TOOL], parallel_tool_calls=False).warnings[0]
        assert built(tools=[TOOL], parallel_tool_calls=True).warnings == ()


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
        made = self.model_parts(message)
        assert [(part["text"], part.get("thoughtSignature")) for part in made] == parts

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


class TestThinking:
    @pytest.mark.parametrize(
        ("model", "effort", "config"),
        [
            (FLASH, "low", {"includeThoughts": True, "thinkingBudget": 1024}),
            (FLASH, "high", {"includeThoughts": True, "thinkingBudget": 24576}),
            (FLASH, "minimal", {"includeThoughts": True, "thinkingBudget": 1024}),
            (FLASH, "medium", {"includeThoughts": True, "thinkingBudget": 8192}),
            (FLASH, "xhigh", {"includeThoughts": True, "thinkingBudget": 24576}),
            (FLASH, "max", {"includeThoughts": True, "thinkingBudget": 24576}),
            ("gemini-2.5-pro", "max", {"includeThoughts": True, "thinkingBudget": 32768}),
            (THIRD, "xhigh", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
            (THIRD, "max", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
            ("gemini-3.6-flash", "minimal", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
            ("gemini-3.8-flash", "minimal", {"includeThoughts": True, "thinkingLevel": "LOW"}),
            ("gemini-4-argon", "none", {"thinkingLevel": "LOW"}),
            ("gemini-4-argon", "minimal", {"includeThoughts": True, "thinkingLevel": "LOW"}),
            ("gemini-4-argon", "medium", {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
            ("gemini-4-argon", "max", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
            (FLASH, "none", {"thinkingBudget": 0}),
            ("gemini-2.5-pro", "xhigh", {"includeThoughts": True, "thinkingBudget": 32768}),
            ("gemini-2.5-pro", "none", {"thinkingBudget": 128}),
            (THIRD, "minimal", {"includeThoughts": True, "thinkingLevel": "MINIMAL"}),
            (THIRD, "medium", {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
            (THIRD, "none", {"thinkingLevel": "MINIMAL"}),
            ("gemini-3-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "HIGH"}),
            ("gemini-3-pro-preview", "minimal", {"includeThoughts": True, "thinkingLevel": "LOW"}),
            ("gemini-3.1-pro-preview", "medium", {"includeThoughts": True, "thinkingLevel": "MEDIUM"}),
            ("gemini-3.1-pro-preview", "none", {"thinkingLevel": "LOW"}),
            ("gemini-pro-latest", "low", {"includeThoughts": True, "thinkingLevel": "LOW"}),
            ("tunedModels/mine", "low", {"includeThoughts": True, "thinkingBudget": 1024}),
        ],
    )
    def test_effort__by_generation__budget_or_level(self, model: str, effort: str, config: dict[str, Any]) -> None:
        assert config_of(model, reasoning_effort=effort)["thinkingConfig"] == config

    @pytest.mark.parametrize(
        ("model", "thinking", "config"),
        [
            (FLASH, {"type": "enabled", "budget_tokens": 2000}, {"includeThoughts": True, "thinkingBudget": 2000}),
            (FLASH, {"type": "enabled", "budget_tokens": 99999}, {"includeThoughts": True, "thinkingBudget": 24576}),
            (
                "gemini-2.5-flash-lite",
                {"type": "enabled", "budget_tokens": 5},
                {"includeThoughts": True, "thinkingBudget": 512},
            ),
            (FLASH, {"type": "adaptive"}, {"includeThoughts": True, "thinkingBudget": -1}),
            (FLASH, {"type": "disabled"}, {"thinkingBudget": 0}),
            (THIRD, {"type": "enabled", "budget_tokens": 512}, {"includeThoughts": True, "thinkingBudget": 512}),
            (THIRD, {"type": "adaptive"}, {"includeThoughts": True}),
            (FLASH, {"type": "between_tools"}, {"thinkingBudget": 0}),
            (FLASH, {"type": "enabled", "token_budget": 2000}, {"includeThoughts": True, "thinkingBudget": 2000}),
            (FLASH, {"type": "enabled", "budget_tokens": 2000, "display": "omitted"}, {"thinkingBudget": 2000}),
            (THIRD, {"type": "adaptive", "display": "summarized"}, {"includeThoughts": True}),
        ],
    )
    def test_thinking__by_generation__budget(
        self, model: str, thinking: dict[str, Any], config: dict[str, Any]
    ) -> None:
        assert config_of(model, thinking=thinking)["thinkingConfig"] == config

    @pytest.mark.parametrize(
        "model", ["gemini-2.0-flash", "gemini-1.5-pro", "gemma-3-27b-it", "gemini-2.5-flash-image"]
    )
    def test_effort__model_that_does_not_reason__dropped_and_named(self, model: str) -> None:
        request = built(model, reasoning_effort="high")
        assert "thinkingConfig" not in json.loads(request.body).get("generationConfig", {})
        assert "reasoning_effort" in request.warnings[0]

    @pytest.mark.parametrize("effort", ["low", "medium", "high", "xhigh", "max"])
    @pytest.mark.parametrize("limit", [400, 1000, 3000, 20000])
    @pytest.mark.parametrize("model", [FLASH, "gemini-2.5-pro"])
    def test_effort__beside_a_limit__leaves_room_for_the_answer(self, model: str, effort: str, limit: int) -> None:
        config = config_of(model, reasoning_effort=effort, max_tokens=limit)
        assert config["maxOutputTokens"] == limit
        assert 0 < config["thinkingConfig"]["thinkingBudget"] <= limit * 3 // 4

    @pytest.mark.parametrize(
        ("model", "limit", "sent", "named"),
        [("gemini-2.5-flash-lite", 500, 0, "thinking: dropped"), ("gemini-2.5-pro", 100, 128, "thinking: max_tokens")],
    )
    def test_effort__limit_below_the_least_budget__named(self, model: str, limit: int, sent: int, named: str) -> None:
        request = built(model, reasoning_effort="high", max_tokens=limit)
        assert json.loads(request.body)["generationConfig"]["thinkingConfig"]["thinkingBudget"] == sent
        assert request.warnings[0].startswith(named)

    @pytest.mark.parametrize("model", [FLASH, THIRD])
    def test_budget__of_the_client__kept_unless_the_limit_is_not_above_it(self, model: str) -> None:
        wish = {"type": "enabled", "budget_tokens": 2999}
        request = built(model, thinking=wish, max_tokens=3000)
        assert json.loads(request.body)["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 2999
        assert request.warnings == ()
        request = built(model, thinking=wish, max_tokens=2999)
        assert json.loads(request.body)["generationConfig"]["thinkingConfig"]["thinkingBudget"] == 2249
        assert request.warnings[0].startswith("thinking.budget_tokens: lowered")

    @pytest.mark.parametrize(
        ("wish", "name"),
        [({"reasoning_effort": "ultra"}, "reasoning_effort"), ({"thinking": {"type": "tomorrow"}}, "thinking")],
    )
    @pytest.mark.parametrize("model", [FLASH, THIRD])
    def test_word_of_tomorrow__refused_by_name(self, model: str, wish: dict[str, Any], name: str) -> None:
        with pytest.raises(UnsupportedParameterError) as caught:
            built(model, **wish)
        assert caught.value.parameter == name

    def test_thinking__fields_without_counterpart__named(self) -> None:
        wish = {"type": "enabled", "budget_tokens": 2000, "block_binding": "x"}
        assert built(thinking=wish).warnings[0].startswith("thinking.block_binding")

    def test_effort__cannot_be_switched_off__named(self) -> None:
        assert "always reasons" in built("gemini-2.5-pro", reasoning_effort="none").warnings[0]


class TestFormat:
    def test_json_object__media_type_alone(self) -> None:
        assert config_of(response_format={"type": "json_object"}) == {"responseMimeType": "application/json"}

    @pytest.mark.parametrize("given", [{"type": "object"}, {"name": "a", "schema": {"type": "object"}}])
    def test_json_object__with_a_schema_beside__that_schema(self, given: dict[str, Any]) -> None:
        assert config_of(response_format={"type": "json_object", "json_schema": given}) == {
            "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object"},
        }

    def test_json_schema__whole_schema(self) -> None:
        schema = {"type": "object", "properties": {"a": {"type": ["string", "null"]}}, "additionalProperties": False}
        wish = {"name": "a", "schema": schema, "strict": True, "description": "An answer"}
        assert config_of(response_format={"type": "json_schema", "json_schema": wish}) == {
            "responseMimeType": "application/json",
            "responseJsonSchema": {"description": "An answer", **schema},
        }

    def test_text__nothing(self) -> None:
        assert config_of(response_format={"type": "text"}) == {}
