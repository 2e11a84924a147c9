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
        "says how the answer travels, and usage is asked for in any case",
        ("stream_options", "stream_options.*"),
    ),
    Silence(
        "asks for what happens anyway",
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
        ),
    ),
    Silence(
        "thoughts are shown unless the client wants them omitted",
        ("thinking[enabled].display=summarized", "thinking[adaptive].display=summarized"),
        lambda place: place.provider in ("google", "google_vertex", "anthropic", "azure_anthropic"),
    ),
    Silence(
        "a model that does not reason does as it is told",
        ("reasoning_effort=none", "thinking[disabled]", "thinking[between_tools]"),
    ),
    Silence(
        "every schema is followed strictly, and its name is nobody's word",
        ("response_format[json_schema].json_schema.name", "response_format[json_schema].json_schema.strict=*"),
        lambda place: place.provider in OWN_DIALECTS,
    ),
    Silence(
        "the same text, in another form",
        ("messages[*].content[list]", "messages[*].content[list][text]", "prediction.content[list]"),
    ),
    Silence(
        "the marker of a prompt cache, at a vendor or model that has none",
        ("*.prompt_cache_breakpoint*", "*.cache_control*"),
        _has_no_markers,
    ),
    Silence(
        "the format of a sound, where its bytes alone are sent and tell it",
        ("messages[user].content[list][input_audio].input_audio.format=*",),
        lambda place: place.provider == "mistral",
    ),
    Silence(
        "another vendor's signed reasoning, which is of use to nobody else",
        ("messages[assistant].content*[thinking].signature", "messages[assistant].content*[thinking].closed*"),
    ),
    Silence(
        "what an answer carried in its vendor's own words, and no other vendor takes back",
        ("messages[assistant].audio*", "messages[assistant].tool_plan", "messages[assistant].citations*"),
        lambda place: place.provider != "cohere" or place.crosses_vendor,
    ),
    Silence(
        "the sound of an answer, which only its own vendor holds",
        ("messages[assistant].audio*",),
    ),
    Silence(
        "the sources of a text, which are no part of it",
        ("messages[*].content*[text].citations*",),
        lambda place: place.provider == "bedrock" or not _is_claude(place),
    ),
    Silence(
        "asks that an answer that stands last goes on, as it does anyway",
        ("messages[assistant].prefix*",),
        lambda place: place.provider != "mistral",
    ),
    Silence(
        "which call a result answers is told by its id, and at Vertex before Gemini 3, which refuses ids, by its order",
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
    if case.says_nothing:
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
