"""What Anthropic's Messages API refuses.

No rule stands for a first message of the assistant or for two turns of one role: the API joins turns and takes both
since 2025 (https://docs.anthropic.com/en/api/messages#body-messages).
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any, get_args

from anthropic.types.anthropic_beta_param import AnthropicBetaParam
from anthropic.types.beta import BetaContentBlockParam, BetaToolUnionParam, message_create_params

from tests.fakes.dialects.rules.fields import Place, missing_fields, tags, unknown_fields
from tests.fakes.dialects.rules.schemas import is_of, subschemas
from tests.fakes.dialects.rules.table import Found, Json, Request, Rule, Table, only_mappings

_REPORTS = "https://github.com/"
_DOCS = "https://platform.claude.com/docs/en/"
_KIND = message_create_params.MessageCreateParamsBase
# Fields that the newest types no longer have: the sampling of older models, and the first form of `output_config`.
_BESIDE_THE_TYPE = {"stream", "output_format", "temperature", "top_p", "top_k"}
_TYPES = {401: "authentication_error", 404: "not_found_error"}
_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_ID = re.compile(r"[a-zA-Z0-9_-]+")
_VERSION = re.compile(r"claude-(?:(\d)-(\d)?-?)?(opus|sonnet|haiku|fable|mythos)(?:-(\d)(?:[-.](\d{1,2})(?!\d))?)?")
# A field, and the beginning of the beta without which the API does not know it.
_BETA_FIELDS = {
    "context_management": ("context-management-", "compact-"),
    "mcp_servers": ("mcp-client-",),
    "output_format": ("structured-outputs-",),
    "speed": ("fast-mode-",),
    "thread": ("message-threads-",),
}
# What Claude Code sends beside the betas of the SDK (version 2.1.197).
_OF_CLAUDE_CODE = (
    "claude-code-", "oauth-", "prompt-caching-scope-", "effort-", "advanced-tool-use-", "tool-search-tool-",
    "fine-grained-tool-streaming-", "web-search-", "web-fetch-", "redact-thinking-", "tool-examples-",
    "structured-outputs-", "compact-", "context-hint-", "summarize-connector-text-", "afk-mode-", "extended-cache-ttl-",
    "mid-conversation-system-", "prompt-caching-", "interleaved-thinking-",
)  # fmt: skip
_KNOWN_BETAS = frozenset(name for kind in get_args(AnthropicBetaParam) for name in get_args(kind))
# The longest answers by family and version, of which the first that is not newer than the model holds.
_MAX_OUTPUT: dict[str, tuple[tuple[tuple[int, int], int], ...]] = {
    "opus": (((4, 6), 128_000), ((4, 5), 64_000), ((4, 0), 32_000), ((3, 0), 4_096)),
    "sonnet": (((4, 6), 128_000), ((3, 7), 64_000), ((3, 5), 8_192), ((3, 0), 4_096)),
    "haiku": (((4, 5), 64_000), ((3, 5), 8_192), ((3, 0), 4_096)),
    "fable": (((5, 0), 128_000),),
    "mythos": (((5, 0), 128_000),),
}
# Keywords that a schema of structured output may not have, by the type of the value.
_NUMERIC = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_UNSUPPORTED = {"integer": _NUMERIC, "number": _NUMERIC, "string": ("minLength", "maxLength")}
_FORCED = ("any", "tool")
# The thinking that a fake has signed, by its signature.
_SIGNED: dict[str, set[str]] = {}


def sign(signature: str, thinking: str) -> None:
    """Remembers what an answer signed, so that an altered copy is refused."""
    _SIGNED.setdefault(signature, set()).add(thinking)


def error(status: int, message: str, param: str | None, code: str | None) -> Json:
    del param, code  # Anthropic names the field in its sentence.
    kind = _TYPES.get(status, "invalid_request_error")
    return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_fake"}


def version(model: str) -> tuple[str, tuple[int, int]]:
    """Returns family and version, ("", (0, 0)) for a name that does not show them."""
    found = _VERSION.search(model)
    if found is None:
        return "", (0, 0)
    major, minor = (found[1], found[2]) if found[1] else (found[4], found[5])
    default = (5, 0) if found[3] in ("fable", "mythos") else (0, 0)
    return found[3], (int(major), int(minor or 0)) if major else default


def blocks(message: Mapping[str, Any]) -> list[tuple[int, Mapping[str, Any]]]:
    content = message.get("content")
    return [(0, {"type": "text", "text": content})] if isinstance(content, str) else only_mappings(content)


def messages(request: Request) -> list[tuple[int, Mapping[str, Any]]]:
    return only_mappings(request.body.get("messages"))


def tools(request: Request) -> list[tuple[int, Mapping[str, Any]]]:
    return only_mappings(request.body.get("tools"))


def betas(request: Request) -> list[str]:
    return [name.strip() for name in request.headers.get("anthropic-beta", "").split(",") if name.strip()]


def _thinking(request: Request) -> Mapping[str, Any]:
    thinking = request.body.get("thinking")
    return thinking if isinstance(thinking, Mapping) else {}


def _path(body: Any, place: Place) -> str:
    """Writes the place as Anthropic does, with each object's type: `messages.0.content.1.tool_use.input`."""
    written: list[str] = []
    for step in place[:-1]:
        written.append(str(step))
        body = body[step]
        if isinstance(body, Mapping) and (isinstance(body.get("type"), str) or place[0] == "tools" == written[-2]):
            written.append(body.get("type", "custom"))
    return ".".join((*written, str(place[-1])))


def _no_messages(request: Request) -> Found:
    return {} if request.body.get("messages") == [] else None


def _unknown(request: Request) -> Found:
    present = {name: value for name, value in request.body.items() if name not in _BESIDE_THE_TYPE}
    found = next(unknown_fields(present, _KIND), None)
    return None if found is None else {"path": _path(request.body, found)}


def _missing(request: Request) -> Found:
    found = next(missing_fields(request.body, _KIND), None)
    if found is not None:
        return {"path": _path(request.body, found)}
    for index, tool in tools(request):
        schema = tool.get("input_schema")
        if isinstance(schema, Mapping) and "type" not in schema:
            return {"path": f"tools.{index}.custom.input_schema.type"}
    return None


def _without_its_beta(request: Request) -> Found:
    for name, needed in _BETA_FIELDS.items():
        if request.body.get(name) is not None and not any(beta.startswith(needed) for beta in betas(request)):
            return {"path": name}
    return None


def _beta(request: Request) -> Found:
    unknown = [name for name in betas(request) if name not in _KNOWN_BETAS and not name.startswith(_OF_CLAUDE_CODE)]
    return {"names": ", ".join(f"`{name}`" for name in unknown)} if unknown else None


def _tag(request: Request) -> Found:
    for index, message in messages(request):
        for position, block in blocks(message):
            if block.get("type") not in tags(BetaContentBlockParam):
                found = {"path": f"messages.{index}.content.{position}", "tag": block.get("type")}
                return {**found, "tags": _quoted(tags(BetaContentBlockParam))}
            source = block.get("source")
            is_file = isinstance(source, Mapping) and source.get("type") == "file" and block["type"] == "image"
            if is_file and not any(beta.startswith("files-api-") for beta in betas(request)):
                path = f"messages.{index}.content.{position}.image.source"
                return {"path": path, "tag": "file", "tags": "'base64', 'url'"}
    for index, tool in tools(request):
        if tool.get("type") is not None and tool["type"] not in tags(BetaToolUnionParam):
            return {"path": f"tools.{index}", "tag": tool["type"], "tags": _quoted(tags(BetaToolUnionParam))}
    return None


def _quoted(names: tuple[str, ...]) -> str:
    return ", ".join(f"'{name}'" for name in names)


def _server_tool_name(request: Request) -> Found:
    for index, tool in tools(request):
        expected = _name_of_server_tool(str(tool.get("type", "")))
        if expected and tool.get("name") != expected:
            return {"path": f"tools.{index}.{tool['type']}.name", "name": expected}
    return None


def _name_of_server_tool(kind: str) -> str:
    """Returns the tool's only valid name: its type without the date."""
    found = re.fullmatch(r"(web_search|web_fetch|code_execution|memory|bash)_\d{8}", kind)
    return found[1] if found else ""


def _tool_name(request: Request) -> Found:
    for index, tool in tools(request):
        if "name" in tool and not _NAME.fullmatch(str(tool["name"])):
            return {"path": f"tools.{index}.{tool.get('type', 'custom')}.name"}
    return None


def _repeated_tool(request: Request) -> Found:
    names = [tool["name"] for _, tool in tools(request) if "name" in tool]
    return {} if len(set(names)) < len(names) else None


def _tool_schema(request: Request) -> Found:
    for index, tool in tools(request):
        schema = tool.get("input_schema")
        if isinstance(schema, Mapping) and {"oneOf", "allOf", "anyOf"} & schema.keys():
            return {"index": index}
    return None


def _answer_schema(request: Request) -> Found:
    config = request.body.get("output_config")
    held = config.get("format") if isinstance(config, Mapping) else request.body.get("output_format")
    if isinstance(held, Mapping) and (problem := _schema_problem(held.get("schema"))):
        name = "output_config.format" if isinstance(config, Mapping) else "output_format"
        return {"path": f"{name}.schema", "problem": problem}
    for index, tool in tools(request):
        if tool.get("strict") is True and (problem := _schema_problem(tool.get("input_schema"))):
            return {"path": f"tools.{index}.custom", "problem": problem}
    return None


def _schema_problem(schema: Any) -> str:
    for _, inner in subschemas(schema):
        if is_of(inner, "object") and inner.get("additionalProperties") is not False:
            return "For 'object' type, 'additionalProperties' must be explicitly set to false"
        for kind, keywords in _UNSUPPORTED.items():
            found = [word for word in keywords if word in inner] if is_of(inner, kind) else []
            if found:
                verb = "property {} is" if len(found) == 1 else "properties {} are"
                return f"For '{kind}' type, {verb.format(', '.join(sorted(found)))} not supported"
    return ""


def _choice_without_tools(request: Request) -> Found:
    return {} if "tool_choice" in request.body and not request.body.get("tools") else None


def _limit(request: Request) -> Found:
    value = request.body.get("max_tokens")
    family, number = version(request.model)
    most = next((most for since, most in _MAX_OUTPUT.get(family, ()) if number >= since), None)
    if not isinstance(value, int) or most is None or any(beta.startswith("output-") for beta in betas(request)):
        return None
    return {"value": value, "most": most, "model": request.model} if value > most else None


def _no_limit(request: Request) -> Found:
    value = request.body.get("max_tokens")
    return {"value": value} if isinstance(value, int) and value < 1 else None


def _temperature(request: Request) -> Found:
    value = request.body.get("temperature")
    return {} if isinstance(value, int | float) and not 0 <= value <= 1 else None


def _both_kinds_of_sampling(request: Request) -> Found:
    family, number = version(request.model)
    one_only = number >= (4, 5) or (family, number) == ("opus", (4, 1))
    return {} if one_only and {"temperature", "top_p"} <= request.body.keys() else None


def _sampling(request: Request) -> Found:
    if version(request.model)[1] < (4, 7):
        return None
    defaults = {"temperature": 1, "top_p": 1, "top_k": None}
    for name, default in defaults.items():
        if request.body.get(name) not in (None, default):
            return {"name": name}
    return None


def _small_budget(request: Request) -> Found:
    budget = _thinking(request).get("budget_tokens")
    return {} if isinstance(budget, int) and budget < 1024 else None


def _large_budget(request: Request) -> Found:
    budget, limit = _thinking(request).get("budget_tokens"), request.body.get("max_tokens")
    if any(beta.startswith("interleaved-thinking-") for beta in betas(request)):
        return None
    return {} if isinstance(budget, int) and isinstance(limit, int) and budget >= limit else None


def _budget_at_an_adaptive_model(request: Request) -> Found:
    return {} if _thinking(request).get("type") == "enabled" and version(request.model)[1] >= (4, 7) else None


def _adaptive_at_an_older_model(request: Request) -> Found:
    number = version(request.model)[1]
    return {} if _thinking(request).get("type") == "adaptive" and (0, 0) < number < (4, 6) else None


def _effort(request: Request) -> Found:
    config = request.body.get("output_config")
    family, number = version(request.model)
    has_effort = isinstance(config, Mapping) and config.get("effort") is not None
    has_none = (0, 0) < number < (4, 6) and (family, number) != ("opus", (4, 5))
    return {} if has_effort and has_none else None


def _forced_with_thinking(request: Request) -> Found:
    choice = request.body.get("tool_choice")
    is_forced = isinstance(choice, Mapping) and choice.get("type") in _FORCED
    return {} if is_forced and _thinking(request).get("type") == "enabled" else None


def _sampling_with_thinking(request: Request) -> Found:
    if _thinking(request).get("type") not in ("enabled", "adaptive"):
        return None
    if request.body.get("temperature", 1) != 1:
        return {"problem": "`temperature` may only be set to 1"}
    if request.body.get("top_k") is not None:
        return {"problem": "`top_k` must be unset"}
    if (request.body.get("top_p") or 1) < 0.95:
        return {"problem": "`top_p` must be greater than or equal to 0.95 or unset"}
    return None


def _thought_blocks(request: Request) -> Iterator[tuple[int, int, Mapping[str, Any]]]:
    for index, message in messages(request):
        for position, block in blocks(message):
            if block.get("type") == "thinking":
                yield index, position, block


def _foreign_thinking(request: Request) -> Found:
    """Anthropic's signatures are base64."""
    for index, position, block in _thought_blocks(request):
        try:
            is_signed = bool(base64.b64decode(str(block.get("signature") or ""), validate=True))
        except ValueError:
            is_signed = False
        if not is_signed:
            return {"index": index, "position": position}
    return None


def _altered_thinking(request: Request) -> Found:
    for index, position, block in _thought_blocks(request):
        signed = _SIGNED.get(block["signature"])
        if signed is not None and block.get("thinking") not in signed:
            return {"index": index, "position": position}
    return None


def _loop_without_thinking(request: Request) -> Found:
    """Finds a tool loop that began without thinking, in a request that thinks with a budget."""
    begun = _beginning_of_the_loop(messages(request))
    if _thinking(request).get("type") != "enabled" or begun is None:
        return None
    index, message = begun
    first = next((block.get("type") for _, block in blocks(message)), None)
    return None if first in ("thinking", "redacted_thinking") else {"index": index, "type": first}


def _beginning_of_the_loop(turns: list[tuple[int, Mapping[str, Any]]]) -> tuple[int, Mapping[str, Any]] | None:
    """Returns the answer that began the last loop of calls and results; None where the user has spoken."""
    begun = None
    for index, message in reversed(turns):
        if message.get("role") == "assistant":
            begun = (index, message)
        elif not any(block.get("type") == "tool_result" for _, block in blocks(message)):
            break
    return begun if turns and turns[-1][1].get("role") == "user" else None


def _used(message: Mapping[str, Any]) -> list[Any]:
    return [block.get("id") for _, block in blocks(message) if block.get("type") == "tool_use"]


def _results(message: Mapping[str, Any]) -> list[tuple[int, Any]]:
    return [(place, block.get("tool_use_id")) for place, block in blocks(message) if block.get("type") == "tool_result"]


def _use_without_result(request: Request) -> Found:
    turns = messages(request)
    for (index, message), (_, after) in zip(turns, [*turns[1:], (0, {})], strict=False):
        # The API answers the calls of its own tools itself, whose ids begin so, and takes no result of the client's.
        answered = {name for _, name in _results(after) if not str(name).startswith("srvtoolu_")}
        missing = [name for name in _used(message) if name not in answered]
        if missing:
            return {"index": index, "ids": ", ".join(map(str, missing))}
    return None


def _result_without_use(request: Request) -> Found:
    used: list[Any] = []
    for index, message in messages(request):
        for place, name in _results(message):
            if name not in used:
                return {"index": index, "position": place, "id": name}
        used = _used(message)
    return None


def _result_behind_text(request: Request) -> Found:
    for index, message in messages(request):
        kinds = [block.get("type") == "tool_result" for _, block in blocks(message)]
        if any(kinds) and kinds != sorted(kinds, reverse=True):
            return {"index": index, "ids": ", ".join(str(name) for _, name in _results(message))}
    return None


def _repeated_use(request: Request) -> Found:
    seen: set[Any] = set()
    for index, message in messages(request):
        for position, block in blocks(message):
            if block.get("type") == "tool_use":
                if block.get("id") in seen:
                    return {"index": index, "position": position}
                seen.add(block.get("id"))
    return None


def _use_id(request: Request) -> Found:
    for index, message in messages(request):
        for position, block in blocks(message):
            for kind, name in (("tool_use", "id"), ("tool_result", "tool_use_id")):
                if block.get("type") == kind and not _ID.fullmatch(str(block.get(name, ""))):
                    return {"path": f"messages.{index}.content.{position}.{kind}.{name}"}
    return None


def _use_input(request: Request) -> Found:
    for index, message in messages(request):
        for position, block in blocks(message):
            if block.get("type") == "tool_use" and not isinstance(block.get("input"), Mapping):
                return {"index": index, "position": position}
    return None


def _no_content(request: Request) -> Found:
    turns = messages(request)
    for index, message in turns:
        is_last_of_the_assistant = message.get("role") == "assistant" and index == turns[-1][0]
        if message.get("content") in ("", [], None) and not is_last_of_the_assistant:
            return {"index": index}
    return None


def _blank_text(request: Request) -> Found:
    for _, message in messages(request):
        for _, block in blocks(message):
            inner = block.get("content") if block.get("type") == "tool_result" else None
            for _, text in [(0, block), *only_mappings(inner)]:
                if text.get("type") == "text" and not str(text.get("text", "")).strip():
                    problem = "contain non-whitespace text" if text.get("text") else "be non-empty"
                    return {"where": "messages", "problem": problem}
    for _, text in only_mappings(request.body.get("system")):
        if not str(text.get("text", "")).strip():
            return {"where": "system", "problem": "be non-empty"}
    return None


def _blank_end(request: Request) -> Found:
    turns = messages(request)
    if not turns or turns[-1][1].get("role") != "assistant":
        return None
    texts = [block.get("text", "") for _, block in blocks(turns[-1][1]) if block.get("type") == "text"]
    return {} if texts and texts[-1] != texts[-1].rstrip() else None


def _prefill(request: Request) -> Found:
    """A turn paused at one of the API's own tools is not a prefill: it goes on."""
    turns = messages(request)
    if version(request.model)[1] < (4, 6) or not turns or turns[-1][1].get("role") != "assistant":
        return None
    kinds = [str(block.get("type")) for _, block in blocks(turns[-1][1])]
    return None if kinds and kinds[-1].startswith(("server_tool_use", "mcp_")) else {}


def _role(request: Request) -> Found:
    """Finds instructions among the messages where the model takes none, or in a place that is none of theirs."""
    turns = messages(request)
    roles = ["", *(message.get("role") for _, message in turns), "assistant"]
    for (index, message), before, after in zip(turns, roles, roles[2:], strict=False):
        role = message.get("role")
        if role not in ("user", "assistant", "system"):
            return {"problem": f"messages.{index}.role: Input should be 'user', 'assistant' or 'system'"}
        if role == "system" and version(request.model)[1] < (4, 8):
            return {"problem": f"messages.{index}.role: role 'system' is not supported on this model"}
        if role == "system" and (before, after) != ("user", "assistant"):
            return {"problem": f"messages.{index}: a system message must follow a user message and end the turn"}
    return None


def _marked(value: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(value, Mapping):
        if isinstance(value.get("cache_control"), Mapping):
            yield value
        for name, held in value.items():
            if name not in ("input", "input_schema"):
                yield from _marked(held)
    elif isinstance(value, list):
        for held in value:
            yield from _marked(held)


def _markers(request: Request) -> list[Mapping[str, Any]]:
    body = request.body
    own = [body] if isinstance(body.get("cache_control"), Mapping) else []
    return [*_marked(body.get("tools")), *_marked(body.get("system")), *_marked(body.get("messages")), *own]


def _many_markers(request: Request) -> Found:
    count = len(_markers(request))
    return {"count": count} if count > 4 else None


def _order_of_markers(request: Request) -> Found:
    lives = [block["cache_control"].get("ttl", "5m") for block in _markers(request)]
    is_long_behind_short = any(one == "5m" and "1h" in lives[index:] for index, one in enumerate(lives))
    return {} if is_long_behind_short else None


def _stop(request: Request) -> Found:
    stops = request.body.get("stop_sequences")
    return {} if isinstance(stops, list) and not all(str(stop).strip() for stop in stops) else None


def _user(request: Request) -> Found:
    metadata = request.body.get("metadata")
    user = metadata.get("user_id") if isinstance(metadata, Mapping) else None
    return {} if isinstance(user, str) and re.fullmatch(r"[^@\s]+@[^@\s]+\.[^@\s]+", user) else None


MESSAGES = Table(
    error,
    (
        Rule(
            "no message",
            _REPORTS + "anomalyco/opencode/pull/46291",
            "messages: at least one message is required",
            _no_messages,
        ),
        Rule(
            "unknown field",
            _REPORTS + "anthropics/claude-code/issues/31033",
            "{path}: Extra inputs are not permitted",
            _unknown,
        ),
        Rule(
            "field without its beta",
            _REPORTS + "anthropics/claude-code/issues/14135",
            "{path}: Extra inputs are not permitted",
            _without_its_beta,
        ),
        Rule(
            "unknown beta",
            _REPORTS + "anthropics/claude-code/issues/53855",
            "Unexpected value(s) {names} for the `anthropic-beta` header. Please consult our documentation "
            "at docs.anthropic.com or try again without the header.",
            _beta,
        ),
        Rule(
            "unknown type",
            _REPORTS + "dirac-run/dirac/issues/57",
            "{path}: Input tag '{tag}' found using 'type' does not match any of the expected tags: {tags}",
            _tag,
        ),
        Rule(
            "missing field",
            _DOCS + "api/messages/create",
            "{path}: Field required",
            _missing,
        ),
        Rule(
            "role",
            _DOCS + "build-with-claude/mid-conversation-system-messages#limitations",
            "{problem}",
            _role,
        ),
        Rule(
            "name of a server tool",
            _DOCS + "agents-and-tools/tool-use/web-search-tool",
            "{path}: Input should be '{name}'",
            _server_tool_name,
        ),
        Rule(
            "name of a tool",
            _REPORTS + "modelcontextprotocol/typescript-sdk/issues/413",
            "{path}: String should match pattern '^[a-zA-Z0-9_-]{{1,128}}$'",
            _tool_name,
        ),
        Rule(
            "repeated name of a tool",
            _REPORTS + "anthropics/claude-code/issues/10687",
            "tools: Tool names must be unique.",
            _repeated_tool,
        ),
        Rule(
            "alternatives at a schema's root",
            _REPORTS + "anthropics/claude-code/issues/27337",
            "tools.{index}.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
            _tool_schema,
        ),
        Rule(
            "schema of a strict answer",
            _REPORTS + "ax-llm/ax/issues/458",
            "{path}: {problem}",
            _answer_schema,
        ),
        Rule(
            "tool_choice without tools",
            _DOCS + "agents-and-tools/tool-use/implement-tool-use",
            "tool_choice: tool_choice may only be specified while providing tools",
            _choice_without_tools,
        ),
        Rule(
            "limit above the model's",
            _REPORTS + "OpenHands/OpenHands/issues/11090",
            "max_tokens: {value} > {most}, which is the maximum allowed number of output tokens for {model}",
            _limit,
        ),
        Rule(
            "limit of nothing",
            _DOCS + "api/messages/create",
            "max_tokens: must be greater than or equal to 1",
            _no_limit,
        ),
        Rule(
            "temperature out of bounds",
            _REPORTS + "anthropics/anthropic-sdk-python/issues/893",
            "temperature: range: 0..1",
            _temperature,
        ),
        Rule(
            "sampling at a model without it",
            _REPORTS + "UKGovernmentBEIS/inspect_ai/issues/3721",
            "`{name}` is deprecated for this model.",
            _sampling,
        ),
        Rule(
            "both kinds of sampling",
            _REPORTS + "skydiscover-ai/skydiscover/issues/15",
            "`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
            _both_kinds_of_sampling,
        ),
        Rule(
            "small budget",
            _REPORTS + "themaximalist/llm.js/issues/30",
            "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
            _small_budget,
        ),
        Rule(
            "budget above the limit",
            _DOCS + "build-with-claude/extended-thinking",
            "`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at"
            " https://docs.claude.com/en/docs/build-with-claude/extended-thinking#max-tokens-and-context-"
            "window-size",
            _large_budget,
        ),
        Rule(
            "budget at a model that adapts",
            _DOCS + "about-claude/models/migration-guide",
            '"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and '
            '"output_config.effort" to control thinking behavior.',
            _budget_at_an_adaptive_model,
        ),
        Rule(
            "adaptive thinking at an older model",
            _DOCS + "build-with-claude/adaptive-thinking",
            "adaptive thinking is not supported on this model",
            _adaptive_at_an_older_model,
        ),
        Rule(
            "effort at a model without it",
            _DOCS + "build-with-claude/effort",
            "This model does not support the effort parameter.",
            _effort,
        ),
        Rule(
            "forced tool with thinking",
            _REPORTS + "can1357/oh-my-pi/issues/341",
            "Thinking may not be enabled when tool_choice forces tool use.",
            _forced_with_thinking,
        ),
        Rule(
            "sampling with thinking",
            _REPORTS + "quarkiverse/quarkus-langchain4j/issues/1812",
            "{problem} when thinking is enabled. Please consult our documentation at "
            "https://docs.claude.com/en/docs/build-with-claude/extended-thinking#important-considerations-"
            "when-using-extended-thinking",
            _sampling_with_thinking,
        ),
        Rule(
            "thinking of another vendor",
            _REPORTS + "agentscope-ai/agentscope/pull/1668",
            "messages.{index}.content.{position}: Invalid `signature` in `thinking` block",
            _foreign_thinking,
        ),
        Rule(
            "altered thinking",
            _REPORTS + "anthropics/claude-code/issues/63474",
            "messages.{index}.content.{position}: `thinking` or `redacted_thinking` blocks in the latest "
            "assistant message cannot be modified. These blocks must remain as they were in the original "
            "response.",
            _altered_thinking,
        ),
        Rule(
            "loop without thinking",
            _REPORTS + "deepset-ai/haystack-core-integrations/issues/2146",
            "messages.{index}.content.0.type: Expected `thinking` or `redacted_thinking`, but found "
            "`{type}`. When `thinking` is enabled, a final `assistant` message must start with a thinking "
            "block (preceeding the lastmost set of `tool_use` and `tool_result` blocks).",
            _loop_without_thinking,
        ),
        Rule(
            "no content",
            _REPORTS + "glowingjade/obsidian-smart-composer/pull/156",
            "messages.{index}: all messages must have non-empty content except for the optional final "
            "assistant message",
            _no_content,
        ),
        Rule(
            "blank text",
            _REPORTS + "anthropics/claude-code/issues/59812",
            "{where}: text content blocks must {problem}",
            _blank_text,
        ),
        Rule(
            "id of a call",
            _REPORTS + "tailcallhq/forgecode/issues/1142",
            "{path}: String should match pattern '^[a-zA-Z0-9_-]+$'",
            _use_id,
        ),
        Rule(
            "input of a call",
            _REPORTS + "anthropics/claude-code/issues/6696",
            "messages.{index}.content.{position}.tool_use.input: Input should be a valid dictionary",
            _use_input,
        ),
        Rule(
            "repeated id of a call",
            _REPORTS + "trycua/cua/issues/524",
            "messages.{index}.content.{position}: `tool_use` ids must be unique",
            _repeated_use,
        ),
        Rule(
            "call without result",
            "recording anthropic/anthropic_web_search_tool.49519be1",
            "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            "{ids}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            _use_without_result,
        ),
        Rule(
            "result without call",
            _REPORTS + "decocms/studio/issues/1803",
            "messages.{index}.content.{position}: unexpected `tool_use_id` found in `tool_result` blocks: "
            "{id}. Each `tool_result` block must have a corresponding `tool_use` block in the previous "
            "message.",
            _result_without_use,
        ),
        Rule(
            "result behind a text",
            _DOCS + "agents-and-tools/tool-use/implement-tool-use",
            "messages.{index}: `tool_use` ids were found without `tool_result` blocks immediately after: "
            "{ids}. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
            _result_behind_text,
        ),
        Rule(
            "prefill",
            _REPORTS + "ericc-ch/copilot-api/pull/261",
            "This model does not support assistant message prefill. The conversation must end with a user message.",
            _prefill,
        ),
        Rule(
            "blank at the end",
            _REPORTS + "crewAIInc/crewAI/pull/4542",
            "messages: final assistant content cannot end with trailing whitespace",
            _blank_end,
        ),
        Rule(
            "many cache markers",
            _REPORTS + "tghamm/Anthropic.SDK/issues/50",
            "A maximum of 4 blocks with cache_control may be provided. Found {count}.",
            _many_markers,
        ),
        Rule(
            "order of cache markers",
            _REPORTS + "headroomlabs-ai/headroom/issues/2939",
            "cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control "
            "block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.",
            _order_of_markers,
        ),
        Rule(
            "blank stop sequence",
            _REPORTS + "BerriAI/litellm/issues/3286",
            "stop_sequences: each stop sequence must contain non-whitespace",
            _stop,
        ),
        Rule(
            "user with an address",
            _REPORTS + "BerriAI/litellm/issues/10106",
            "metadata.user_id: user_id appears to contain an email address. Please send a uuid or hash value instead.",
            _user,
        ),
    ),
)
