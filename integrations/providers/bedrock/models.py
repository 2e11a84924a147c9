"""What a model's Bedrock id shows.

An id is `vendor.model-version`, with the prefix of a cross-region profile `us.vendor.model…` (also `eu.`, `apac.`,
`global.`…), or an ARN that contains one of these. The ARN of an application's own profile shows nothing
(https://docs.aws.amazon.com/bedrock/latest/userguide/inference-profiles-support.html).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from integrations.providers.common.claude import CLAUDE, UNKNOWN, Version, family_and_version

BEDROCK_FORMAT = "amazon-bedrock-v1"

_VENDOR = re.compile(
    r"(?:^|[./])(ai21|amazon|anthropic|arcee|cohere|deepseek|google|ibm|luma|meta|minimax|mistral|moonshot|moonshotai"
    r"|nvidia|openai|qwen|stability|twelvelabs|upstage|writer|xai|zai)\."
)


@dataclass(frozen=True, slots=True)
class Model:
    """`vendor` is empty if the id does not show it. `family` and `version` are those of a Claude model."""

    name: str
    vendor: str
    family: str = ""
    version: Version = UNKNOWN

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
    def takes_tools(self) -> bool:
        """Every Claude since 3; other vendors decide themselves."""
        return not self.is_claude or self.version >= (3, 0)

    @property
    def takes_schemas(self) -> bool:
        """Claude since 4.5, no Nova (https://docs.aws.amazon.com/bedrock/latest/userguide/structured-output.html).

        Other unlisted models cannot be made to call a tool either, so their vendor decides.
        """
        return self.version >= (4, 5) if self.is_claude else not self.is_nova

    @property
    def searches_the_web(self) -> bool:
        """https://docs.aws.amazon.com/nova/latest/nova2-userguide/web-grounding.html and, for Nova Premier,
        https://docs.aws.amazon.com/nova/latest/userguide/grounding.html"""
        return self.is_nova and ("nova-2-" in self.name or "nova-premier" in self.name)

    @property
    def reasoning_format(self) -> str:
        return CLAUDE if self.may_be_claude else BEDROCK_FORMAT

    @property
    def caches_messages(self) -> bool:
        """Claude since 3.5, and Nova (https://docs.aws.amazon.com/bedrock/latest/userguide/prompt-caching.html)."""
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
    return Model(model_id, vendor, *(family_and_version(model_id) if vendor == "anthropic" else ()))
