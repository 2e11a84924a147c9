from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import msgspec

from integrations.providers.anthropic.answer_tool import with_answer_tool
from integrations.providers.anthropic.cache_markers import add_markers, wants_markers
from integrations.providers.anthropic.hosts import OWN, Host
from integrations.providers.anthropic.messages import Messages, read_messages
from integrations.providers.anthropic.models import Rules, rules_of
from integrations.providers.anthropic.native import FIELDS, betas_of
from integrations.providers.anthropic.schema import accepted_schema
from integrations.providers.anthropic.thinking import ThinkingSettings, output_limit, sampling, thinking_settings
from integrations.providers.anthropic.tools import tools_and_choice
from integrations.providers.base import ChatRequest
from integrations.providers.common.parameters import Mapped, ResponseFormat, max_tokens, response_format, stop_sequences

_encode = msgspec.json.Encoder().encode
# OpenAI's names of service tiers are mapped to Anthropic's: https://docs.anthropic.com/en/api/service-tiers.
_SERVICE_TIERS = {"auto": "auto", "default": "standard_only", "standard_only": "standard_only"}
# The API has a mode for JSON that follows a schema and none for any JSON, so an instruction asks for it.
_JSON_INSTRUCTION = "Answer with one valid JSON object and nothing else: no explanation, no code fence."

# The API refuses personal data: "user_id appears to contain an email address" (or a phone number),
# https://platform.claude.com/docs/en/api/messages/create#create.metadata. A number without a plus may be an ordinary
# id.
_PERSONAL = re.compile(r"[^@\s]+@[^@\s]+\.[^@\s]+|^\+[\d\s().-]{7,}$")
_MAX_USER_ID = 256

# A request without any field but the most common ones is translated by a shorter code path.
_PLAIN = frozenset(
    {"model", "messages", "stream", "stream_options", "max_tokens", "max_completion_tokens", "temperature", "top_p"}
)

Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class BuiltBody:
    body: bytes
    betas: tuple[str, ...]
    warnings: tuple[str, ...]


def build(request: ChatRequest, *, provider: str, host: Host = OWN, deployment: str = "") -> BuiltBody:
    """`deployment` is the model's name at the host. Raises UnsupportedParameterError if the answer would differ in kind
    from the requested one."""
    # A plain dictionary is made because the request's own mapping is ten times slower for absent names.
    fields = dict(request.fields)
    mapped = Mapped(provider, fields, is_translated=request.is_translated)
    rules = rules_of(request.model, request.max_output)
    translated = read_messages(request, rules, mapped)
    if fields.keys() <= _PLAIN:
        more = sampling(mapped, rules, thinks=False)
        limit, betas = output_limit(mapped, rules, max_tokens(mapped)), []
    else:
        limit, more = _translated(mapped, rules, translated)
        betas = _betas(mapped)
    body: Json = {"model": deployment or request.model, "max_tokens": limit, "messages": translated.messages}
    if translated.system:
        body["system"] = translated.system
    if request.stream:
        body["stream"] = True
    body |= more
    if request.cache_markers and wants_markers(request):
        add_markers(body)
    betas += [*betas_of(body, files=translated.files), *host.betas_of(body)]
    if translated.system_as_user:
        mapped.notes.append("messages: the system message was sent as the user's, anthropic wants one of the user")
    return BuiltBody(_encode(host.body(body)), tuple(dict.fromkeys(betas)), mapped.warnings())


def _translated(mapped: Mapped, rules: Rules, translated: Messages) -> tuple[int, Json]:
    _refuse_other_kinds(mapped)
    answer_format = response_format(mapped)
    tools, choice = with_answer_tool(mapped, rules, answer_format, *tools_and_choice(mapped, rules))
    without_thinking = translated.continues_without_thinking()
    thinking = thinking_settings(mapped, rules, max_tokens(mapped), choice=choice, without_thinking=without_thinking)
    optional: Json = {
        **sampling(mapped, rules, thinks=thinking.thinks),
        "stop_sequences": _stop(mapped) or None,
        "tools": tools or None,
        "tool_choice": choice,
        "thinking": thinking.thinking,
        "output_config": _output_config(mapped, rules, thinking, answer_format, translated) or None,
        "metadata": _metadata(mapped) or None,
        "service_tier": _service_tier(mapped) or None,
        **{name: mapped.take(name) for name in FIELDS if name in mapped.fields},
    }
    return thinking.max_tokens, {name: value for name, value in optional.items() if value is not None}


def _refuse_other_kinds(mapped: Mapped) -> None:
    count = mapped.take("n")
    if count is not None and count != 1:
        raise mapped.refuse("n", "anthropic gives one answer to a request")
    modalities = mapped.take("modalities")
    if isinstance(modalities, list) and any(kind != "text" for kind in modalities):
        raise mapped.refuse("modalities", "anthropic answers in text only")


def _output_config(
    mapped: Mapped, rules: Rules, thinking: ThinkingSettings, answer_format: ResponseFormat | None, translated: Messages
) -> Json:
    config: Json = {"effort": thinking.effort} if thinking.effort else {}
    native = mapped.take("output_config")
    older = mapped.take("output_format")  # The beta version named the field `output_format`.
    if answer_format is not None and answer_format.kind == "json_schema" and rules.schema:
        config["format"] = {"type": "json_schema", "schema": accepted_schema(answer_format.described_schema)}
    elif answer_format is not None and answer_format.kind == "json_object":
        if mapped.fields["response_format"].get("json_schema"):
            mapped.drop("response_format.json_schema", "it goes with the type json_schema")
        translated.system = _with_instruction(translated.system)
        mapped.notes.append("response_format: asked for in words, anthropic has no mode for JSON without a schema")
    if isinstance(older, Mapping):
        config["format"] = older
    return {**config, **native} if isinstance(native, Mapping) else config


def _with_instruction(system: str | list[Json]) -> str | list[Json]:
    if isinstance(system, list):
        return [*system, {"type": "text", "text": _JSON_INSTRUCTION}]
    return f"{system}\n\n{_JSON_INSTRUCTION}" if system else _JSON_INSTRUCTION


def _stop(mapped: Mapped) -> list[str]:
    native = mapped.take("stop_sequences")
    sequences = stop_sequences(mapped) + (list(native) if isinstance(native, list) else [])
    sent = [text for text in sequences if isinstance(text, str) and text.strip()]
    if len(sent) < len(sequences):
        # The API refuses such a sequence: "stop_sequences: each stop sequence must contain non-whitespace".
        mapped.drop("stop", "anthropic takes no sequence of white space alone")
    return sent


def _metadata(mapped: Mapped) -> Json:
    metadata = mapped.take("metadata")
    given = metadata if isinstance(metadata, Mapping) else {}
    others = [name for name in given if name != "user_id"]
    if others:
        mapped.drop("metadata", f"anthropic knows user_id alone, not {', '.join(others[:5])}")
    user, safety = mapped.take("user"), mapped.take("safety_identifier")
    user_id = str(given.get("user_id") or user or safety or "")
    if _PERSONAL.search(user_id) or len(user_id) > _MAX_USER_ID:
        mapped.drop("user", f"anthropic takes no addresses and numbers of people, nor more than {_MAX_USER_ID}")
        return {}
    return {"user_id": user_id} if user_id else {}


def _service_tier(mapped: Mapped) -> str:
    tier = mapped.take("service_tier")
    known = _SERVICE_TIERS.get(tier, "") if isinstance(tier, str) else ""
    if tier is not None and not known:
        mapped.drop("service_tier", f"anthropic has no tier {tier!r}")
    return known


def _betas(mapped: Mapped) -> list[str]:
    betas = mapped.take("betas")
    if isinstance(betas, str):
        return [name.strip() for name in betas.split(",") if name.strip()]
    return [str(name) for name in betas] if isinstance(betas, list) else []
