"""What a Bedrock model id tells about the model behind it.

Ids: `vendor.model-version`, behind a cross-region profile `us.vendor.model…` (also `eu.`, `apac.`, `global.`…), or an
ARN that holds either. The ARN of an application's own profile tells nothing
(https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

CLAUDE_FORMAT = "anthropic-claude-v1"
BEDROCK_FORMAT = "amazon-bedrock-v1"

_VENDOR = re.compile(
    r"(?:^|[./])(ai21|amazon|anthropic|cohere|deepseek|google|meta|minimax|mistral|moonshot|nvidia|openai|qwen|writer|zai)\."
)
# `claude-sonnet-4-5-20250929`, `claude-opus-4-7`, `claude-sonnet-5`; older names put the number first.
_CLAUDE = re.compile(r"claude-(?:[a-z]+-)?(\d{1,2})(?:-(\d{1,2}))?(?!\d)")


@dataclass(frozen=True, slots=True)
class Model:
    """`vendor` is empty where the id does not tell. `version` is that of a Claude model, (0, 0) for any other."""

    name: str
    vendor: str
    version: tuple[int, int]

    @property
    def is_claude(self) -> bool:
        return self.vendor == "anthropic"

    @property
    def may_be_claude(self) -> bool:
        return self.vendor in ("anthropic", "")

    @property
    def is_nova(self) -> bool:
        return self.vendor == "amazon" and "nova-" in self.name

    @property
    def reasoning_format(self) -> str:
        """The `format` of `reasoning_details` that this model signs and understands. Claude's signatures are good at
        every platform that serves it (https://docs.claude.com/en/docs/build-with-claude/extended-thinking)."""
        return CLAUDE_FORMAT if self.may_be_claude else BEDROCK_FORMAT

    @property
    def caches_messages(self) -> bool:
        """https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html: Claude since 3.5, and Nova."""
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
    return Model(model_id, vendor, _claude_version(model_id) if vendor == "anthropic" else (0, 0))


def _claude_version(model_id: str) -> tuple[int, int]:
    found = _CLAUDE.search(model_id)
    return (int(found.group(1)), int(found.group(2) or 0)) if found else (0, 0)
