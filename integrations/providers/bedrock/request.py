"""https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from integrations.providers.base import ChatRequest
from integrations.providers.bedrock.blocks import Rebuilder
from integrations.providers.bedrock.media import PROVIDER, MediaBlocks
from integrations.providers.bedrock.messages import MessageWriter, is_native, tool_use_id
from integrations.providers.bedrock.models import Model, model_of
from integrations.providers.bedrock.schema import function_of, schema_tool, text_format
from integrations.providers.bedrock.thinking import (
    Thinking,
    fit_effort,
    fit_thinking,
    inference_config,
    thinking_of,
    top_k,
)
from integrations.providers.bedrock.tools import (
    ToolConfig,
    additional_tool_choice,
    forbids_calls,
    system_tools,
    tool_config,
    with_forced,
)
from integrations.providers.common.cache_markers import has_own_markers, is_long_enough
from integrations.providers.common.claude import min_cached_tokens
from integrations.providers.common.conversation import (
    Conversation,
    ToolCall,
    ToolResult,
    read_conversation,
    with_distinct_ids,
)
from integrations.providers.common.instructions import as_user
from integrations.providers.common.parameters import Mapped, ResponseFormat, response_format

# A client may send Converse's own parameters under their own names. `inferenceConfig`, `outputConfig` and
# `additionalModelRequestFields` are merged over the translated values.
_NATIVE = (
    "guardrailConfig",
    "performanceConfig",
    "requestMetadata",
    "promptVariables",
    "additionalModelResponseFieldPaths",
    "serviceTier",
)
# Parameters of single vendors' models are sent in `additionalModelRequestFields`.
_MODEL_FIELDS = ("anthropic_beta", "output_config", "reasoning_config", "reasoningConfig")
_SERVICE_TIERS = ("priority", "default", "flex", "reserved")
_JSON_ONLY = "Answer with one JSON object and nothing else."
_NO_CALLS = "Answer without calling a tool."

Body = dict[str, Any]


_POINT = {"cachePoint": {"type": "default"}}
_NOVA_MIN_TOKENS = 1000
# A cache point stands behind these blocks: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html
_MARKED = frozenset({"text", "image", "document", "toolUse", "toolResult"})


def wants_points(request: ChatRequest, model: Model) -> bool:
    """True if the project asks for markers, the model takes them, the client set none, and the request is long
    enough.
    """
    if not request.cache_markers or not model.vendor or not model.caches_messages or has_own_markers(request.body):
        return False
    min_tokens = min_cached_tokens(model.family, model.version) if model.is_claude else _NOVA_MIN_TOKENS
    return is_long_enough(request.body, min_tokens)


def add_points(body: dict[str, Any], model: Model) -> None:
    if model.caches_tools and "toolConfig" in body:
        body["toolConfig"]["tools"] = [*body["toolConfig"]["tools"], _POINT]
    if "system" in body:
        body["system"] = [*body["system"], _POINT]
    messages = body["messages"]
    before = [message for message in messages[:-1] if message["role"] == "user"]
    for message in (*before[-1:], messages[-1]):
        if not _MARKED.isdisjoint(message["content"][-1]):
            message["content"] = [*message["content"], _POINT]


def build_body(request: ChatRequest) -> tuple[Body, tuple[str, ...]]:
    mapped = Mapped(PROVIDER, request.fields, is_translated=request.is_translated)
    _refuse_other_kinds(mapped)
    model = model_of(request.model)
    conversation = with_distinct_ids(_conversation(mapped, model), tool_use_id)
    answer_format = response_format(mapped)
    config = _tool_config(mapped, model, conversation, answer_format)
    writer = MessageWriter(model, MediaBlocks(request.media))
    body: Body = {"messages": writer.messages(conversation)}
    if system := writer.system(conversation) + _instructions(mapped, answer_format, config):
        body["system"] = system
    thinking = _thinking(mapped, model, conversation, body, config.choice)
    if inference := inference_config(mapped, model, thinking):
        body["inferenceConfig"] = inference
    if output := _output_config(mapped, model, answer_format, thinking):
        body["outputConfig"] = output
    additional = {**thinking.fields, **_own_fields(mapped), **top_k(mapped, model, thinking)}
    _add_tools(mapped, model, config, body, additional)
    additional.update(mapped.take("additionalModelRequestFields") or {})
    if additional:
        body["additionalModelRequestFields"] = additional
    _add_native(mapped, body)
    if request.cache_markers and wants_points(request, model):
        add_points(body, model)
    return body, mapped.warnings()


def _conversation(mapped: Mapped, model: Model) -> Conversation:
    """Keeps mid-conversation instructions in place, as the user's: Converse's schema has a role `system`, but its
    models refuse it (https://github.com/BerriAI/litellm/issues/41043)."""
    mapped.drop_names()
    rebuild = Rebuilder(model, system_tools(mapped.fields))
    conversation = as_user(read_conversation(mapped.fields, native=is_native, keep_places=True, rebuild=rebuild))
    if conversation.details():
        mapped.drop("messages.image_url.detail")
    return conversation


def _refuse_other_kinds(mapped: Mapped) -> None:
    count = mapped.take("n")
    if count is not None and count != 1:
        raise mapped.refuse("n", "Bedrock gives one answer a request")
    modalities = mapped.take("modalities")
    if mapped.take("audio") is not None or (modalities and "audio" in modalities):
        raise mapped.refuse("modalities", "Converse answers with text only")


def _tool_config(
    mapped: Mapped, model: Model, conversation: Conversation, answer_format: ResponseFormat | None
) -> ToolConfig:
    config = tool_config(mapped, model, conversation)
    name = schema_tool(mapped.fields, model)
    if answer_format is None or not name:
        return config
    return with_forced(config, function_of(mapped, answer_format, name))


def _thinking(
    mapped: Mapped, model: Model, conversation: Conversation, body: Body, choice: Mapping[str, Any] | None
) -> Thinking:
    thinking = thinking_of(mapped, model)
    if thinking.is_on and model.is_claude:
        forced = bool(choice) and "auto" not in (choice or {})
        return fit_thinking(mapped, thinking, forced=forced, unsigned=_unsigned_step(conversation, body))
    return fit_effort(mapped, thinking)


def _unsigned_step(conversation: Conversation, body: Body) -> bool:
    """Whether the request continues a call of another vendor's model, before which Claude would require its own
    thought."""
    turns = conversation.turns
    if len(turns) < 2 or not any(isinstance(block, ToolResult) for block in turns[-1].blocks):
        return False
    if not any(isinstance(block, ToolCall) for block in turns[-2].blocks):
        return False
    return not any("reasoningContent" in block for block in body["messages"][-2]["content"])


def _instructions(mapped: Mapped, answer_format: ResponseFormat | None, config: ToolConfig) -> list[dict[str, Any]]:
    instructions = []
    if answer_format is not None and answer_format.kind == "json_object":
        mapped.drop("response_format", "Bedrock knows no JSON without a schema: an instruction asks for it")
        if mapped.fields["response_format"].get("json_schema") is not None:
            mapped.drop("response_format.json_schema", "it goes with the type json_schema")
        instructions.append({"text": _JSON_ONLY})
    if config.for_history_only and forbids_calls(mapped.fields):
        mapped.drop("tool_choice", "Bedrock cannot forbid calls beside a history of them: an instruction does")
        instructions.append({"text": _NO_CALLS})
    return instructions


def _add_tools(mapped: Mapped, model: Model, config: ToolConfig, body: Body, additional: Body) -> None:
    if not config.tools:
        mapped.take("parallel_tool_calls")
        return
    body["toolConfig"] = {"tools": config.tools}
    if parallel := additional_tool_choice(mapped, model, config.choice):
        additional["tool_choice"] = parallel
    elif config.choice:
        body["toolConfig"]["toolChoice"] = config.choice


def _output_config(mapped: Mapped, model: Model, answer_format: ResponseFormat | None, thinking: Thinking) -> Body:
    config: Body = {}
    is_schema = answer_format is not None and answer_format.kind == "json_schema"
    if answer_format is not None and is_schema and (model.takes_schemas or not model.takes_tools):
        config["textFormat"] = text_format(mapped, model, answer_format)
    if thinking.effort:
        config["effort"] = thinking.effort
    config.update(mapped.take("outputConfig") or {})
    return config


def _own_fields(mapped: Mapped) -> Body:
    return {name: value for name in _MODEL_FIELDS if (value := mapped.take(name)) is not None}


def _add_native(mapped: Mapped, body: Body) -> None:
    tier = mapped.take("service_tier")
    if tier in _SERVICE_TIERS:
        body["serviceTier"] = {"type": tier}
    elif tier not in (None, "auto"):
        mapped.drop("service_tier")
    for name in _NATIVE:
        value = mapped.take(name)
        if value is not None:
            body[name] = value
