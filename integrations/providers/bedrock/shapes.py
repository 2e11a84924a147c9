"""The parts of Converse's answers that are read, whole and streamed; unknown fields are skipped.
https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_ContentBlock.html and
…/API_runtime_ContentBlockDelta.html"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from integrations.providers.bedrock.finish import FINISH_REASONS, unusable
from integrations.providers.bedrock.messages import redacted_data
from integrations.providers.bedrock.models import Model
from integrations.providers.common.charges import served_tier
from integrations.providers.common.completion import reasoning_encrypted, reasoning_text
from integrations.providers.usage import Usage, with_total

SERVER_TOOL = "server_tool_use"


class Struct(msgspec.Struct, rename="camel"):
    """The base of the structures, whose fields have camelCase names in the JSON of Converse."""


class CacheDetail(Struct):
    """The number of the tokens written to the prompt cache that are kept for `ttl`."""

    ttl: Any = None
    input_tokens: int | float | None = 0


class Counts(Struct):
    """The token counts of an answer. `inputTokens` leaves out tokens read from or written to the prompt cache."""

    input_tokens: int | float | None = 0
    output_tokens: int | float | None = 0
    cache_read_input_tokens: int | float | None = 0
    cache_write_input_tokens: int | float | None = 0
    total_tokens: int | float | None = 0
    cache_details: list[CacheDetail] | None = None

    def usage(self, service_tier: Any = None) -> Usage:
        """Returns the usage. The values of `service_tier`:
        https://docs.aws.amazon.com/bedrock/latest/userguide/service-tiers-inference.html."""
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
    """Returns the citation as OpenAI's annotation; None unless it cites a web page. `start` and `end` are offsets in
    the text."""
    web = citation.location.web if citation.location else None
    if web is None or not web.url:
        return None
    title = citation.title or web.domain or web.url
    return {
        "type": "url_citation",
        "url_citation": {"url": web.url, "title": title, "start_index": start, "end_index": end},
    }


def citation_of(citation: Any) -> Citation:
    """Returns the decoded citation. Raises ProviderError(UNUSABLE) for another form."""
    try:
        return msgspec.convert(citation, Citation)
    except msgspec.ValidationError as error:
        raise unusable("a citation is not of Converse's form") from error


def specific_fields(answer: Any) -> dict[str, Any]:
    """Returns the vendor's fields of an answer, or of an event of a stream, that describe the answer and not its
    content, with the stop reason where it is an unknown one."""
    fields = {
        "stopReason": "" if answer.stop_reason in FINISH_REASONS else answer.stop_reason,
        "additionalModelResponseFields": answer.additional_model_response_fields,
        "trace": answer.trace,
        "performanceConfig": answer.performance_config,
        "serviceTier": answer.service_tier,
    }
    return {name: value for name, value in fields.items() if value}


def image_part(format_name: str, content: str) -> dict[str, Any]:
    """Returns an image in the form that OpenRouter gives images in an answer (`message.images`)."""
    return {"type": "image_url", "image_url": {"url": f"data:image/{format_name};base64,{content}"}}


def reasoning_detail(model: Model, index: int, text: str, signature: str, redacted: bytes) -> dict[str, Any] | None:
    """Returns the entry of `reasoning_details` that has to come back unchanged; None for unsigned reasoning.

    `index` is the block's place in the message as it will come back: behind as many thoughts, calls and, if there was
    any, the text, which is one block then. A model may think between its calls.
    """
    name = model.reasoning_format
    if redacted:
        return reasoning_encrypted(redacted_data(redacted, name), format=name, index=index)
    return reasoning_text(text, format=name, signature=signature, index=index) if signature else None


def _count(value: float | None) -> int:
    return int(value) if value is not None and 0 < value < 1e15 else 0
