"""Facts about a model that its Bedrock id shows.

An id is `vendor.model-version`, with the prefix of a cross-region profile `us.vendor.model…` (also `eu.`, `apac.`,
`global.`…), or an ARN that contains one of these. The ARN of an application's own profile shows nothing
(https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

CLAUDE_FORMAT = "anthropic-claude-v1"
BEDROCK_FORMAT = "amazon-bedrock-v1"

_VENDOR = re.compile(
    r"(?:^|[./])(ai21|amazon|anthropic|arcee|cohere|deepseek|google|ibm|luma|meta|minimax|mistral|moonshot|moonshotai"
    r"|nvidia|openai|qwen|stability|twelvelabs|upstage|writer|xai|zai)\."
)
_FAMILIES = ("opus", "sonnet", "haiku", "fable", "mythos")
# The first models of the families Fable and Mythos have no version in their names, and always think.
_YOUNG_FAMILIES = ("fable", "mythos")


@dataclass(frozen=True, slots=True)
class Model:
    """A model of Bedrock. `vendor` is empty where the id does not show it. `family` and `version` are those of a Claude
    model."""

    name: str
    vendor: str
    family: str = ""
    version: tuple[int, int] = (0, 0)

    @property
    def is_claude(self) -> bool:
        return self.vendor == "anthropic"

    @property
    def may_be_claude(self) -> bool:
        return self.vendor in ("anthropic", "")

    @property
    def thinking_off(self) -> str:
        """Returns the `type` that turns Claude's thinking off, empty for a model that always thinks
        (https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5, …/sonnet-5-5/whats-new-sonnet-5-5)."""
        if self.family in _YOUNG_FAMILIES or (self.family == "opus" and self.version >= (5, 5)):
            return ""
        return "between_tools" if self.family == "sonnet" and self.version >= (5, 5) else "disabled"

    @property
    def takes_forced_tools(self) -> bool:
        return self.version < (5, 1) or self.family == "haiku"

    @property
    def is_nova(self) -> bool:
        return self.vendor == "amazon" and "nova-" in self.name

    @property
    def takes_tools(self) -> bool:
        """Returns True for models with tools: every Claude since 3, and models of other vendors, who decide
        themselves."""
        return not self.is_claude or self.version >= (3, 0)

    @property
    def takes_schemas(self) -> bool:
        """Returns True for models with JSON schemas
        (https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html): Claude since 4.5, no Nova. Other
        unlisted models cannot be made to call a tool either, so their vendor decides."""
        return self.version >= (4, 5) if self.is_claude else not self.is_nova

    @property
    def searches_the_web(self) -> bool:
        """Returns True for models with Amazon's web search:
        https://docs.aws.amazon.com/nova/latest/nova2-userguide/web-grounding.html and, for Nova Premier,
        https://docs.aws.amazon.com/nova/latest/userguide/grounding.html"""
        return self.is_nova and ("nova-2-" in self.name or "nova-premier" in self.name)

    @property
    def reasoning_format(self) -> str:
        """Returns the `format` of the `reasoning_details` that this model signs and accepts. Claude's signatures are
        valid on every platform that serves it (https://docs.claude.com/en/docs/build-with-claude/extended-thinking)."""
        return CLAUDE_FORMAT if self.may_be_claude else BEDROCK_FORMAT

    @property
    def caches_messages(self) -> bool:
        """Returns True for models with a prompt cache
        (https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html): Claude since 3.5, and Nova."""
        if self.is_claude:
            return self.version >= (3, 5)
        return self.is_nova or not self.vendor

    @property
    def caches_tools(self) -> bool:
        return self.caches_messages and not self.is_nova


@lru_cache(maxsize=1024)
def model_of(model_id: str) -> Model:
    found = _VENDOR.search(model_id)
    vendor = found.group(1) if found else ""
    family, version = _claude(model_id) if vendor == "anthropic" else ("", (0, 0))
    return Model(model_id, vendor, family, version)


def _claude(model_id: str) -> tuple[str, tuple[int, int]]:
    """Returns family and version of a Claude model, read from names like `claude-sonnet-4-5-20250929-v1:0`,
    `claude-3-haiku-20240307-v1:0`, `claude-sonnet-5`, `claude-v2:1`."""
    words = model_id.rpartition("claude-")[2].split("-")
    family = next((word for word in words if word in _FAMILIES), "")
    # Numbers of a version have one or two digits; longer ones are dates.
    numbers = [int(word) for word in words if word.isdecimal() and len(word) <= 2]
    if not numbers:
        return family, (5, 0) if family in _YOUNG_FAMILIES else (0, 0)
    return family, (numbers[0], numbers[1] if len(numbers) > 1 else 0)
