"""The settings object `guardrails` (specification, Gateway settings; design, section 5, Guardrails)."""

from __future__ import annotations

from enum import StrEnum

import msgspec


class TrustMode(StrEnum):
    OFF = "off"  # nothing is looked at
    MONITOR = "monitor"  # looked at and recorded, never blocked, never changed
    ENFORCE = "enforce"


class GuardrailSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Lists are tuples of non-empty texts. `max_prompt_tokens` and `min_quality_score` (0 to 100) None: no bound."""

    trust_mode: TrustMode = TrustMode.OFF
    blocked_input_topics: tuple[str, ...] = ()
    blocked_output_topics: tuple[str, ...] = ()
    max_prompt_tokens: int | None = None
    pii_block_on_detect: bool = False
    prompt_injection_detection: bool = False
    spotlighting_enabled: bool = False
    mask_output_pii: bool = False
    min_quality_score: float | None = None
    blocked_tools: tuple[str, ...] = ()
    block_exfiltration_urls: bool = False

    @property
    def is_on(self) -> bool:
        return self.trust_mode is not TrustMode.OFF

    @property
    def guards_output(self) -> bool:
        """Whether there is anything to look for in an answer."""
        return self.trust_mode is not TrustMode.OFF and bool(
            self.mask_output_pii
            or self.block_exfiltration_urls
            or self.blocked_output_topics
            or self.blocked_tools
            or self.min_quality_score is not None
        )


NO_GUARDRAILS = GuardrailSettings()
