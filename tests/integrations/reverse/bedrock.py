"""Converts a recorded body of Converse to the equivalent OpenAI-format request."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import unquote

from integrations.providers.bedrock.messages import NATIVE_PARTS
from integrations.providers.bedrock.models import model_of
from tests.recordings import Recording

_MEDIA_TYPES = {
    "jpeg": "image/jpeg",
    "png": "image/png",
    "gif": "image/gif",
    "webp": "image/webp",
    "mp4": "video/mp4",
    "pdf": "application/pdf",
    "csv": "text/csv",
    "txt": "text/plain",
    "html": "text/html",
    "md": "text/markdown",
    "docx": "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "xlsx": "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "doc": "application/msword",
    "xls": "application/vnd.ms-excel",
    "wav": "audio/wav",
    "mp3": "audio/mp3",
}
_SAME_NAME = (
    "guardrailConfig",
    "performanceConfig",
    "requestMetadata",
    "promptVariables",
    "additionalModelResponseFieldPaths",
    "serviceTier",
)


def model_id(recording: Recording) -> str:
    return unquote(recording.path.split("/")[2])


def openai_fields(body: Mapping[str, Any], *, model: str, stream: bool = False) -> dict[str, Any]:
    fields: dict[str, Any] = {"model": model, "messages": _system(body) + _messages(body, model)}
    if stream:
        fields["stream"] = True
    fields |= _inference(body.get("inferenceConfig") or {})
    fields |= _tools(body.get("toolConfig") or {})
    fields |= _output(body.get("outputConfig") or {})
    fields |= _additional(body.get("additionalModelRequestFields") or {})
    return fields | {name: body[name] for name in _SAME_NAME if name in body}


def _system(body: Mapping[str, Any]) -> list[dict[str, Any]]:
    parts = list(_marked(body.get("system") or ()))
    content = [part if "type" in part else {"type": "text", **part} for part in parts]
    return [{"role": "system", "content": content}] if content else []


def _marked(blocks: Iterable[Mapping[str, Any]]) -> Iterable[dict[str, Any]]:
    """Yields the blocks with each cache point as the marker of the block before it."""
    found: list[dict[str, Any]] = []
    for block in blocks:
        if "cachePoint" in block and found:
            ttl = block["cachePoint"].get("ttl")
            found[-1]["cache_control"] = {"type": "ephemeral", **({"ttl": ttl} if ttl else {})}
        else:
            found.append(dict(block))
    return found


def _marker(block: Mapping[str, Any]) -> dict[str, Any]:
    return {"cache_control": block["cache_control"]} if "cache_control" in block else {}


def _messages(body: Mapping[str, Any], model: str) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for message in body["messages"]:
        blocks = list(_marked(message["content"]))
        if message["role"] == "assistant":
            messages.append(_assistant(blocks, model))
        else:
            messages += _user(blocks)
    return messages


def _assistant(blocks: list[dict[str, Any]], model: str) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant"}
    if parts := [_part(block) for block in blocks if "text" in block]:
        message["content"] = parts
    calls = [{**_call(block["toolUse"]), **_marker(block)} for block in blocks if "toolUse" in block]
    if calls:
        message["tool_calls"] = calls
    details = [_detail(block["reasoningContent"], model) for block in blocks if "reasoningContent" in block]
    if details:
        message["reasoning_details"] = details
    return message


def _call(use: Mapping[str, Any]) -> dict[str, Any]:
    function = {"name": use["name"], "arguments": json.dumps(use["input"])}
    return {"id": use["toolUseId"], "type": "function", "function": function}


def _detail(content: Mapping[str, Any], model: str) -> dict[str, Any]:
    form = model_of(model).reasoning_format
    if "redactedContent" in content:
        data = base64.b64decode(content["redactedContent"]).decode("latin-1")
        return {"type": "reasoning.encrypted", "data": data, "format": form}
    thought = content["reasoningText"]
    detail = {"type": "reasoning.text", "text": thought["text"], "format": form}
    return {**detail, **({"signature": thought["signature"]} if "signature" in thought else {})}


def _user(blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    messages: list[dict[str, Any]] = []
    for block in blocks:
        if "toolResult" in block:
            messages.append({**_result(block["toolResult"]), **_marker(block)})
        elif messages and messages[-1]["role"] == "user":
            messages[-1]["content"].append(_part(block))
        else:
            messages.append({"role": "user", "content": [_part(block)]})
    return messages


def _result(result: Mapping[str, Any]) -> dict[str, Any]:
    message = {
        "role": "tool",
        "tool_call_id": result["toolUseId"],
        "content": [_part(block) for block in result["content"]],
    }
    return {**message, "is_error": True} if result.get("status") == "error" else message


def _part(block: Mapping[str, Any]) -> dict[str, Any]:
    marker = _marker(block)
    if "text" in block:
        return {"type": "text", "text": block["text"], **marker}
    for name in NATIVE_PARTS:
        if name in block:
            return {"type": name, name: block[name], **marker}
    (kind,) = (name for name in ("image", "document", "video", "audio") if name in block)
    content = block[kind]
    url = _url(content)
    if kind == "audio":
        encoded = url.partition(",")[2]
        return {"type": "input_audio", "input_audio": {"data": encoded, "format": content["format"]}, **marker}
    part = {"type": f"{kind}_url", f"{kind}_url": {"url": url}, **marker}
    return {**part, "name": content["name"]} if "name" in content else part


def _url(content: Mapping[str, Any]) -> str:
    source = content["source"]
    if "s3Location" in source:
        uri: str = source["s3Location"]["uri"]
        return uri
    return f"data:{_MEDIA_TYPES[content['format']]};base64,{source['bytes']}"


def _inference(config: Mapping[str, Any]) -> dict[str, Any]:
    names = {"maxTokens": "max_tokens", "temperature": "temperature", "topP": "top_p", "stopSequences": "stop"}
    return {names[name]: value for name, value in config.items()}


def _tools(config: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    tools = [_tool(tool) for tool in _marked(config.get("tools") or ())]
    if tools:
        fields["tools"] = tools
    choice = config.get("toolChoice") or {}
    if "auto" in choice:
        fields["tool_choice"] = "auto"
    elif "any" in choice:
        fields["tool_choice"] = "required"
    elif "tool" in choice:
        fields["tool_choice"] = {"type": "function", "function": {"name": choice["tool"]["name"]}}
    return fields


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    if "toolSpec" not in tool:
        return dict(tool)
    spec = tool["toolSpec"]
    function = {"name": spec["name"], "parameters": spec["inputSchema"]["json"]}
    function |= {name: spec[name] for name in ("description", "strict") if name in spec}
    return {"type": "function", "function": function, **_marker(tool)}


def _output(config: Mapping[str, Any]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if "textFormat" in config:
        native = config["textFormat"]["structure"]["jsonSchema"]
        schema = {"schema": json.loads(native["schema"])}
        schema |= {name: native[name] for name in ("name", "description") if name in native}
        fields["response_format"] = {"type": "json_schema", "json_schema": schema}
    if "effort" in config:
        fields["outputConfig"] = {"effort": config["effort"]}
    return fields


def _additional(additional: Mapping[str, Any]) -> dict[str, Any]:
    """Returns OpenAI's fields where a client would use them, and the others as the vendor's own fields."""
    fields: dict[str, Any] = {}
    rest = dict(additional)
    for name in ("thinking", "top_k", "anthropic_beta", "reasoning_config", "reasoningConfig", "output_config"):
        if name in rest:
            fields[name] = rest.pop(name)
    if rest.get("inferenceConfig", {}).keys() == {"topK"}:
        fields["top_k"] = rest.pop("inferenceConfig")["topK"]
    if rest:
        fields["additionalModelRequestFields"] = rest
    return fields
