"""Tests tools and their choice in requests for Gemini."""

from __future__ import annotations

from typing import Any

import pytest

from integrations.providers.errors import UnsupportedParameterError
from tests.integrations.google_requests import (
    FLASH,
    FUNCTION,
    THIRD,
    TOOL,
    body_of,
    built,
)


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
        options = {"search_context_size": "high", "user_location": {"type": "approximate"}}
        assert [warning.partition(":")[0] for warning in built(web_search_options=options).warnings] == [
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
    def test_functions_or_googles_tools__where_nothing_is_mixed_or_may_be__not_requested(
        self, model: str, vertex: bool, tools: list[dict[str, Any]]
    ) -> None:
        assert "toolConfig" not in body_of(model, vertex=vertex, tools=tools)

    def test_parallel_calls__forbidden__named(self) -> None:
        assert "parallel_tool_calls" in built(tools=[TOOL], parallel_tool_calls=False).warnings[0]
        assert built(tools=[TOOL], parallel_tool_calls=True).warnings == ()
