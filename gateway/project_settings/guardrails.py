"""The settings object `guardrails` of a project (docs/guardrails.md)."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class TrustMode(StrEnum):
    OFF = "off"  # No text is checked.
    MONITOR = "monitor"  # Findings are recorded, and no text is blocked or changed.
    ENFORCE = "enforce"


class GuardrailSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of a project's guardrails. The tuples hold non-empty texts; `max_prompt_tokens` and
    `min_quality_score` (0 to 100) are no bounds when they are None. Each of `document_delimiters` holds two words: the
    beginning of a document in a message, and its end."""

    trust_mode: TrustMode = TrustMode.OFF
    blocked_input_topics: tuple[str, ...] = ()
    blocked_output_topics: tuple[str, ...] = ()
    max_prompt_tokens: int | None = None
    pii_block_on_detect: bool = False
    prompt_injection_detection: bool = False
    spotlighting_enabled: bool = False
    document_delimiters: tuple[str, ...] = ()
    mask_output_pii: bool = False
    min_quality_score: float | None = None
    blocked_tools: tuple[str, ...] = ()
    block_exfiltration_urls: bool = False

    @property
    def delimiters(self) -> tuple[tuple[str, str], ...]:
        """The pairs of words that `document_delimiters` hold."""
        return tuple((begin, end) for begin, end in map(str.split, self.document_delimiters))

    @property
    def is_on(self) -> bool:
        return self.trust_mode is not TrustMode.OFF

    @property
    def guards_output(self) -> bool:
        """True if any guardrail looks at answers."""
        return self.trust_mode is not TrustMode.OFF and bool(
            self.mask_output_pii
            or self.block_exfiltration_urls
            or self.blocked_output_topics
            or self.blocked_tools
            or self.min_quality_score is not None
        )


NO_GUARDRAILS = GuardrailSettings()
