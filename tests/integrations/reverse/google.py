"""Converts a recorded body of generateContent to the equivalent OpenAI-format request, and compares two bodies."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fakes.dialects.google import DATA, SCHEMAS, camelled

_SAME_NAME = ("safetySettings", "cachedContent", "labels", "modelArmorConfig")
_OWN = {"executableCode", "codeExecutionResult", "toolCall", "toolResponse"}
_PLAIN = {
    "maxOutputTokens": "max_tokens",
    "temperature": "temperature",
    "topP": "top_p",
    "topK": "top_k",
    "candidateCount": "n",
    "stopSequences": "stop",
    "seed": "seed",
    "presencePenalty": "presence_penalty",
    "frequencyPenalty": "frequency_penalty",
    "responseLogprobs": "logprobs",
    "logprobs": "top_logprobs",
}


def openai_request(recorded: Mapping[str, Any], *, model: str, stream: bool) -> dict[str, Any]:
    body = camelled(recorded)
    fields: dict[str, Any] = {"model": model, "messages": _Messages().read(body)}
    if stream:
        fields["stream"] = True
    for tool in body.get("tools", ()):
        fields.setdefault("tools", []).extend(_tools(tool))
    choice = _tool_choice(body.get("toolConfig", {}).get("functionCallingConfig"))
    if choice is not None:
        fields["tool_choice"] = choice
    fields |= _config(body.get("generationConfig", {}))
    return fields | {name: body[name] for name in _SAME_NAME if name in body}


@dataclass
class _Messages:
    """Reads the messages of a recording. Calls without ids get some, since in OpenAI's format a result has to name its
    call."""

    messages: list[dict[str, Any]] = field(default_factory=list)
    # `open_calls` holds the name and the id of each call without a result.
    open_calls: list[tuple[str, str]] = field(default_factory=list)
    generated_ids: int = 0

    def read(self, body: Mapping[str, Any]) -> list[dict[str, Any]]:
        for part in body.get("systemInstruction", {}).get("parts", ()):
            self.messages.append({"role": "system", "content": part["text"]})
        for content in body["contents"]:
            if content.get("role") == "model":
                self._assistant(content["parts"])
            else:
                self._user(content["parts"])
        return self.messages

    def _user(self, parts: list[dict[str, Any]]) -> None:
        content = []
        for part in parts:
            if "functionResponse" in part:
                self._result(part["functionResponse"])
            else:
                content.append(_content_part(part))
        if content:
            plain = len(content) == 1 and content[0]["type"] == "text"
            self.messages.append({"role": "user", "content": content[0]["text"] if plain else content})

    def _assistant(self, parts: list[dict[str, Any]]) -> None:
        message: dict[str, Any] = {"role": "assistant", "content": None}
        for part in parts:
            if not _OWN.isdisjoint(part):
                place = {"content": len(message["content"] or ""), "tool_calls": len(message.get("tool_calls", ()))}
                own = message.setdefault("provider_specific_fields", {}).setdefault("parts", [])
                own.append({**part, "place": {**place, "images": 0}})
            elif "functionCall" in part:
                message.setdefault("tool_calls", []).append(self._call(part))
            elif part.get("thought"):
                _add_detail(message, type="reasoning.text", text=part["text"], signature=part.get("thoughtSignature"))
            else:
                start = len(message["content"] or "")
                message["content"] = (message["content"] or "") + part["text"]
                stretch = f"content:{start}:{len(message['content'])}"
                if "thoughtSignature" in part:
                    _add_detail(message, type="reasoning.encrypted", data=part["thoughtSignature"], id=stretch)
        self.messages.append(message)

    def _call(self, part: Mapping[str, Any]) -> dict[str, Any]:
        function = part["functionCall"]
        self.generated_ids += 1
        call_id = function.get("id") or f"call_{self.generated_ids}"
        self.open_calls.append((function["name"], call_id))
        call: dict[str, Any] = {
            "id": call_id,
            "type": "function",
            "function": {"name": function["name"], "arguments": json.dumps(function.get("args", {}))},
        }
        if "thoughtSignature" in part:
            call["extra_content"] = {"google": {"thought_signature": part["thoughtSignature"]}}
        return call

    def _result(self, result: Mapping[str, Any]) -> None:
        call_id = result.get("id") or next(known for name, known in self.open_calls if name == result["name"])
        self.open_calls = [entry for entry in self.open_calls if entry[1] != call_id]
        response = result["response"]
        failed = response.keys() == {"error"} and isinstance(response["error"], str)
        text = response["error"] if failed else json.dumps(response)
        files = [_content_part(part) for part in result.get("parts", ())]
        texts = [] if files and not response else [{"type": "text", "text": text}]
        message = {"role": "tool", "tool_call_id": call_id, "content": [*texts, *files] if files else text}
        self.messages.append({**message, "is_error": True} if failed else message)


def _add_detail(message: dict[str, Any], **detail: Any) -> None:
    present = {name: value for name, value in detail.items() if value}
    message.setdefault("reasoning_details", []).append({"format": "google-gemini-v1", **present})


def _content_part(part: Mapping[str, Any]) -> dict[str, Any]:
    if "text" in part:
        return {"type": "text", "text": part["text"]}
    if "fileData" in part:
        media_type, url = part["fileData"].get("mimeType", ""), part["fileData"]["fileUri"]
    else:
        media_type = part["inlineData"]["mimeType"]
        url = f"data:{media_type};base64,{part['inlineData']['data']}"
    kind = {"image": "image_url", "video": "video_url"}.get(media_type.partition("/")[0], "document_url")
    detail = {"detail": "high"} if part.get("mediaResolution") else {}
    return {"type": kind, kind: {"url": url, **detail}}


def _tools(tool: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for declaration in tool.get("functionDeclarations", ()):
        function = {"name": declaration["name"], "description": declaration.get("description", "")}
        schema = declaration.get("parametersJsonSchema", declaration.get("parameters"))
        if schema is not None:
            function["parameters"] = lower_types(schema)
        yield {"type": "function", "function": function}
    native = {name: value for name, value in tool.items() if name != "functionDeclarations"}
    if native:
        yield native


def _tool_choice(config: Mapping[str, Any] | None) -> Any:
    if config is None:
        return None
    allowed = config.get("allowedFunctionNames", [])
    if config["mode"] == "ANY" and len(allowed) == 1:
        return {"type": "function", "function": {"name": allowed[0]}}
    if allowed:
        tools = [{"type": "function", "function": {"name": name}} for name in allowed]
        mode = "required" if config["mode"] == "ANY" else "auto"
        return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": tools}}
    return {"NONE": "none", "AUTO": "auto", "ANY": "required"}[config["mode"]]


def _config(config: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    native: dict[str, Any] = {}
    for name, value in config.items():
        if name in _PLAIN:
            fields[_PLAIN[name]] = value
        elif name == "responseModalities":
            fields["modalities"] = [modality.lower() for modality in value]
        elif name == "thinkingConfig":
            _thinking(value, fields, native)
        elif name not in ("responseMimeType", "responseSchema", "responseJsonSchema"):
            native[name] = value
    schema = config.get("responseJsonSchema", config.get("responseSchema"))
    if schema is not None:
        json_schema = {"name": "answer", "schema": lower_types(schema)}
        fields["response_format"] = {"type": "json_schema", "json_schema": json_schema}
    elif config.get("responseMimeType") == "application/json":
        fields["response_format"] = {"type": "json_object"}
    return fields | ({"generationConfig": native} if native else {})


def _thinking(config: Mapping[str, Any], fields: dict[str, Any], native: dict[str, Any]) -> None:
    """Writes the settings of thinking. Those that OpenAI's format cannot express (a budget with hidden thoughts) stay
    in Google's form."""
    budget, shown = config.get("thinkingBudget"), config.get("includeThoughts", False)
    if budget == 0 and not shown:
        fields["thinking"] = {"type": "disabled"}
    elif shown and budget is not None and budget > 0:
        fields["thinking"] = {"type": "enabled", "budget_tokens": budget}
    elif shown and "thinkingLevel" in config:
        fields["reasoning_effort"] = config["thinkingLevel"].lower()
    elif shown:
        fields["thinking"] = {"type": "adaptive"}
    else:
        native["thinkingConfig"] = config


def comparable(body: Mapping[str, Any], *, keep_ids: bool) -> dict[str, Any]:
    """Returns the body without differences that have no effect at Google; the comments give the reason of each."""
    plain: dict[str, Any] = _comparable(camelled(body), keep_ids=keep_ids)
    plain.get("systemInstruction", {}).pop("role", None)  # A role has no meaning in the system instruction.
    declarations = [
        function for tool in plain.get("tools", ()) for function in tool.pop("functionDeclarations", ())
    ]  # Google takes functions in one tool or in several.
    plain["tools"] = [tool for tool in plain.get("tools", ()) if tool] + declarations
    if not plain.get("generationConfig"):
        plain.pop("generationConfig", None)
    return plain


def _comparable(value: Any, *, keep_ids: bool) -> Any:
    if isinstance(value, list):
        return [_comparable(item, keep_ids=keep_ids) for item in value]
    if not isinstance(value, Mapping):
        return value
    found = {}
    for name, inner in value.items():
        if name in SCHEMAS:
            # Google takes both OpenAPI's subset, with types in capitals, and JSON Schema.
            found["schema"] = lower_types(inner)
        elif name == "thoughtSignature":
            # Base64 is decoded in both of its alphabets.
            found[name] = base64.urlsafe_b64decode(inner.replace("+", "-").replace("/", "_"))
        elif name == "id" and not keep_ids:
            continue  # The recording has no ids, so that the client had to make some up.
        elif name == "description" and not inner:
            continue
        elif name == "mediaResolution":
            continue  # The API knows no such field in a part, which is the cause of the recorded 400.
        else:
            found[name] = inner if name in DATA else _comparable(inner, keep_ids=keep_ids)
    return found


def has_ids(body: Any) -> bool:
    """Returns True when the recording's calls have ids."""
    parts = [part for content in body["contents"] for part in content["parts"]]
    calls = [part.get("functionCall") or part.get("function_call") or {} for part in parts]
    return any("id" in call for call in calls)


def lower_types(schema: Any) -> Any:
    if isinstance(schema, list):
        return [lower_types(item) for item in schema]
    if not isinstance(schema, Mapping):
        return schema
    lowered = {
        name: inner.lower() if name == "type" and isinstance(inner, str) else lower_types(inner)
        for name, inner in schema.items()
    }
    if lowered.get("required") == []:
        del lowered["required"]
    return lowered
