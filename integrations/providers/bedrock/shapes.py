"""https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html and
…/API_runtime_ContentBlockDelta.html"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.bedrock.messages import redacted_data
from integrations.providers.bedrock.models import Model
from integrations.providers.common.charges import served_tier
from integrations.providers.common.completion import reasoning_encrypted, reasoning_text, url_citation
from integrations.providers.errors import unusable
from integrations.providers.usage import Usage, with_total

PROVIDER = "bedrock"
FINISH_REASONS = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}
# Converse's words for "The model produced invalid output", or a call that cannot be read:
# https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html#bedrock-runtime_Converse-response-stopReason
_MALFORMED = ("malformed_model_output", "malformed_tool_use")


def finish_reason(stop_reason: str, *, called: bool) -> str:
    """Returns the finish reason. `called` means that the answer holds calls of the client's tools, since calls of the
    vendor's own tools end in `tool_use` too. An unknown reason behind an answer is an ordinary end (see
    `check_usable`)."""
    reason = FINISH_REASONS.get(stop_reason, "stop")
    if reason in ("stop", "tool_calls"):
        return "tool_calls" if called else "stop"
    return reason


def check_usable(stop_reason: str, *, has_output: bool, usage: Usage | None) -> None:
    """Raises ProviderError(UNUSABLE), which is billed, when the model's output was broken, even if it begins with text:
    an agent would take that text for the end of its work. An unknown reason is an error only when there is no answer
    (`has_output` is False)."""
    if stop_reason in _MALFORMED:
        problem = f"the model's answer was broken ({stop_reason})"
    elif stop_reason not in FINISH_REASONS and not has_output:
        problem = f"the answer is empty and ended for an unknown reason ({stop_reason or 'none given'})"
    else:
        return
    raise unusable(problem, PROVIDER, usage=usage, is_failed_generation=True)


SERVER_TOOL = "server_tool_use"


class Struct(msgspec.Struct, rename="camel"):
    pass


class CacheDetail(Struct):
    ttl: Any = None
    input_tokens: int | float | None = 0


class Counts(Struct):
    """`inputTokens` leaves out tokens read from or written to the prompt cache."""

    input_tokens: int | float | None = 0
    output_tokens: int | float | None = 0
    cache_read_input_tokens: int | float | None = 0
    cache_write_input_tokens: int | float | None = 0
    total_tokens: int | float | None = 0
    cache_details: list[CacheDetail] | None = None

    def usage(self, service_tier: Any = None) -> Usage:
        """Values of `service_tier`:
        https://docs.aws.amazon.com/bedrock/latest/userguide/service-tiers-inference.html
        """
        read, written = _count(self.cache_read_input_tokens), _count(self.cache_write_input_tokens)
        prompt, completion, is_total = with_total(
            _count(self.input_tokens) + read + written, _count(self.output_tokens), _count(self.total_tokens)
        )
        return Usage(
            prompt_tokens=prompt,
            completion_tokens=completion,
            cache_read_tokens=read,
            cache_write_tokens=written,
            cache_write_1h_tokens=min(self._cached_for_1h(), written),
            service_tier=served_tier(service_tier.get("type")) if isinstance(service_tier, Mapping) else "",
            estimated=is_total,
        )

    def _cached_for_1h(self) -> int:
        return sum(_count(detail.input_tokens) for detail in self.cache_details or () if detail.ttl == "1h")


class Web(Struct):
    url: str | None = None
    domain: str | None = None


class Location(Struct):
    web: Web | None = None


class Citation(Struct):
    title: str | None = None
    source: str | None = None
    location: Location | None = None


class ImageSource(Struct):
    bytes: str | None = None


class Image(Struct):
    format: str | None = None
    source: ImageSource | None = None


def annotation(citation: Citation, start: int, end: int) -> dict[str, Any] | None:
    web = citation.location.web if citation.location else None
    if web is None or not web.url:
        return None
    return url_citation(web.url, citation.title or web.domain or web.url, start, end)


def citation_of(citation: Any) -> Citation:
    try:
        return msgspec.convert(citation, Citation)
    except msgspec.ValidationError as error:
        raise unusable("a citation is not of Converse's form", PROVIDER) from error


def specific_fields(answer: Any) -> dict[str, Any]:
    fields = {
        "stopReason": "" if answer.stop_reason in FINISH_REASONS else answer.stop_reason,
        "additionalModelResponseFields": answer.additional_model_response_fields,
        "trace": answer.trace,
        "performanceConfig": answer.performance_config,
        "serviceTier": answer.service_tier,
    }
    return {name: value for name, value in fields.items() if value}


def image_part(format_name: str, content: str) -> dict[str, Any]:
    return {"type": "image_url", "image_url": {"url": f"data:image/{format_name};base64,{content}"}}


def reasoning_detail(model: Model, index: int, text: str, signature: str, redacted: bytes) -> dict[str, Any] | None:
    """The entry of `reasoning_details` that must come back unchanged; None for unsigned reasoning.

    `index` is the block's place in the returned message: after as many thoughts, calls and (as one block) text. A model
    may think between its calls.
    """
    name = model.reasoning_format
    if redacted:
        return reasoning_encrypted(redacted_data(redacted, name), format=name, index=index)
    return reasoning_text(text, format=name, signature=signature, index=index) if signature else None


def _count(value: float | None) -> int:
    return int(value) if value is not None and 0 < value < 1e15 else 0
