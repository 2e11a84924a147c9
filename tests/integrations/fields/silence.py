"""The fields that may be left out without a warning (docs/providers.md, "What becomes of a field", 4.), each with the
reason. A path is one of `sources.Case`; `*` stands for any part."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache

from tests.integrations.fields.dialects import OWN_DIALECTS
from tests.integrations.fields.outcomes import Place
from tests.integrations.fields.sources import Case


@dataclass(frozen=True)
class Silence:
    """A field that may be left out without a warning. `where` limits the rule to certain places."""

    reason: str
    paths: tuple[str, ...]
    where: Callable[[Place], bool] = lambda place: True


def _has_no_markers(place: Place) -> bool:
    """Returns True when the vendor's prompt cache needs no markers, because it is automatic or does not exist."""
    return not _is_claude(place) and place.provider not in ("openrouter", "snowflake")


def _is_claude(place: Place) -> bool:
    return "anthropic" in place.provider or "claude" in place.model


ALLOWED = (
    Silence(
        "the options describe the transport of the answer, and usage is always requested",
        ("stream_options", "stream_options.*"),
    ),
    Silence(
        "the value requests the default behaviour",
        (
            "function_call[words]=auto",
            "function_call[words]=none",
            "messages[*].content*.image_url*.detail=auto",
            "modalities=text",
            "parallel_tool_calls=true",
            "response_format[text]",
            "service_tier=auto",
            "service_tier=default",
            "tool_choice[words]=auto",
            "tools*.function.strict=false",
            "text.format[text]",
            "truncation=disabled",
        ),
    ),
    Silence(
        "the gateway makes the answer of the Responses API, and gives each client summaries and what it includes",
        ("include=reasoning.encrypted_content", "reasoning.summary=*", "reasoning.generate_summary=*"),
    ),
    Silence(
        "thoughts that Claude signed, and the mark between two of its models, say nothing to another vendor",
        ("content[thinking]", "content[redacted_thinking]", "content[fallback]"),
    ),
    Silence(
        "thoughts are sent by default",
        ("thinking[enabled].display=summarized", "thinking[adaptive].display=summarized"),
        lambda place: place.provider in ("google", "google_vertex", "anthropic", "azure_anthropic"),
    ),
    Silence(
        "a model without reasoning does not reason anyway",
        ("reasoning_effort=none", "thinking[disabled]", "thinking[between_tools]"),
    ),
    Silence(
        "every schema is followed strictly, and the model does not see its name",
        (
            "response_format[json_schema].json_schema.name",
            "response_format[json_schema].json_schema.strict=*",
            "text.format[json_schema].name",
            "text.format[json_schema].strict=*",
        ),
        lambda place: place.provider in OWN_DIALECTS,
    ),
    Silence(
        "the form of a text, which does not change it",
        ("messages[*].content[list]", "messages[*].content[list][text]", "prediction.content[list]"),
    ),
    Silence(
        "the marker of a prompt cache, at a vendor or model that has none",
        ("*.prompt_cache_breakpoint*", "*.cache_control*"),
        _has_no_markers,
    ),
    Silence(
        "the format of a sound, which the vendor detects from its bytes",
        ("messages[user].content[list][input_audio].input_audio.format=*",),
        lambda place: place.provider == "mistral",
    ),
    Silence(
        "the signature of reasoning, which only the vendor that signed it can use",
        ("messages[assistant].content*[thinking].signature", "messages[assistant].content*[thinking].closed*"),
    ),
    Silence(
        "the vendor's own fields of an answer, which no other vendor accepts",
        ("messages[assistant].audio*", "messages[assistant].tool_plan", "messages[assistant].citations*"),
        lambda place: place.provider != "cohere" or place.crosses_vendor,
    ),
    Silence(
        "the sound of an answer, which only its own vendor stores",
        ("messages[assistant].audio*",),
    ),
    Silence(
        "the sources of a text, which are not a part of it",
        ("messages[*].content*[text].citations*",),
        lambda place: place.provider == "bedrock" or not _is_claude(place),
    ),
    Silence(
        "the request to continue the last answer, which the vendor always does",
        ("messages[assistant].prefix*",),
        lambda place: place.provider != "mistral",
    ),
    Silence(
        "results refer to calls by id, or by order at Vertex before Gemini 3, which refuses ids",
        (
            "messages[tool].name",
            "messages[assistant].tool_calls*.id",
            "messages[assistant].tool_calls*.index",
            "messages[assistant].tool_calls.type",
        ),
    ),
)

# The gateway has some fields of vendors under the same name in another form, so its check refuses the vendor's form.
BARRED = (
    "messages[*].content[list][image_url].image_url[string]",
    "messages[*].content[list][document_url]*",
    "response_format",
    "response_format.*",
    "tool_choice*",
)


def reason_for(case: Case, place: Place) -> str:
    """Returns the reason why the field may be left out without a warning there; empty when it may not."""
    if case.has_no_effect:
        return "false, and an object with nothing in it, ask for nothing"
    for silence in ALLOWED:
        if matches(case.path, silence.paths) and silence.where(place):
            return silence.reason
    return ""


def matches(path: str, patterns: Iterable[str]) -> bool:
    return any(_compiled(pattern).fullmatch(path) for pattern in patterns)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(re.escape(pattern).replace(r"\*", ".*"))
