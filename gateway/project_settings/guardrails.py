from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from gateway.project_settings.declaration import Names, setting
from gateway.project_settings.sections import GUARDRAILS, GUARDRAILS_OF_ANSWERS, GUARDRAILS_OF_REQUESTS


class TrustMode(StrEnum):
    OFF = "off"  # No text is checked.
    MONITOR = "monitor"  # Findings are recorded, and no text is blocked or changed.
    ENFORCE = "enforce"


_TRUST_MODES = {
    TrustMode.OFF: "off: look at nothing",
    TrustMode.MONITOR: "monitor: record, refuse nothing",
    TrustMode.ENFORCE: "enforce: refuse, mask, take out",
}
_PromptTokens = Annotated[int, Meta(ge=1, le=100_000_000)]
_Quality = Annotated[float, Meta(ge=0, le=100)]


def _delimiters_problem(delimiters: Iterable[str]) -> str:
    pairs = map(str.split, delimiters)
    is_right = all(len(words) == 2 and words[0] != words[1] for words in pairs)
    return "" if is_right else "Each has two different words with a blank between, such as <document> </document>."


class GuardrailSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A bound that is None does not exist.

    Each of `document_delimiters` holds two words: the beginning of a document in a message, and its end.
    """

    trust_mode: Annotated[
        TrustMode,
        setting(
            GUARDRAILS,
            "What follows from a finding",
            "Whether guardrails are idle, only record what they find, or act on it.",
            choices=_TRUST_MODES,
        ),
    ] = TrustMode.OFF
    blocked_input_topics: Annotated[
        Names, setting(GUARDRAILS_OF_REQUESTS, "Blocked phrases in requests", "Phrases that a request may not hold.")
    ] = ()
    blocked_output_topics: Annotated[
        Names, setting(GUARDRAILS_OF_ANSWERS, "Blocked phrases in answers", "Phrases that an answer may not hold.")
    ] = ()
    max_prompt_tokens: Annotated[
        _PromptTokens | None,
        setting(
            GUARDRAILS_OF_REQUESTS,
            "Longest prompt, in tokens",
            "The longest prompt, in estimated tokens; null for any.",
            hint="Estimated by four bytes a token.",
        ),
    ] = None
    pii_block_on_detect: Annotated[
        bool,
        setting(
            GUARDRAILS_OF_REQUESTS, "Refuse requests with personal data", "Refuses requests that hold personal data."
        ),
    ] = False
    prompt_injection_detection: Annotated[
        bool,
        setting(
            GUARDRAILS_OF_REQUESTS, "Refuse prompt injections", "Refuses requests that try to take the model over."
        ),
    ] = False
    spotlighting_enabled: Annotated[
        bool,
        setting(
            GUARDRAILS_OF_REQUESTS,
            "Mark texts of tools and documents as data",
            "Marks what tools and documents say as data.",
            hint="In enforce alone.",
        ),
    ] = False
    document_delimiters: Annotated[
        Names,
        setting(
            GUARDRAILS_OF_REQUESTS,
            "Words that a document in a message begins and ends with",
            "The words that a document in a message begins and ends with, a blank between.",
            hint="Two words, such as <document> </document>.",
            problem=_delimiters_problem,
        ),
    ] = ()
    mask_output_pii: Annotated[
        bool,
        setting(
            GUARDRAILS_OF_ANSWERS, "Mask personal data in answers", "Replaces personal data in answers by its kind."
        ),
    ] = False
    min_quality_score: Annotated[
        _Quality | None,
        setting(
            GUARDRAILS_OF_ANSWERS,
            "Lowest quality of an answer, 0 to 100",
            "What judge_model has to give an answer at least; null for any answer.",
            hint="What the judging model has to give.",
        ),
    ] = None
    blocked_tools: Annotated[
        Names,
        setting(
            GUARDRAILS_OF_REQUESTS,
            "Blocked tools",
            "Tools that may be neither offered nor called.",
            hint="Neither offered nor called.",
        ),
    ] = ()
    block_exfiltration_urls: Annotated[
        bool,
        setting(
            GUARDRAILS_OF_ANSWERS,
            "Take out links that carry the conversation elsewhere",
            "Takes links out of answers that carry the conversation to somewhere else.",
        ),
    ] = False

    @property
    def delimiters(self) -> tuple[tuple[str, str], ...]:
        return tuple((begin, end) for begin, end in map(str.split, self.document_delimiters))

    @property
    def is_on(self) -> bool:
        return self.trust_mode is not TrustMode.OFF

    @property
    def guards_output(self) -> bool:
        return self.trust_mode is not TrustMode.OFF and bool(
            self.mask_output_pii
            or self.block_exfiltration_urls
            or self.blocked_output_topics
            or self.blocked_tools
            or self.min_quality_score is not None
        )


NO_GUARDRAILS = GuardrailSettings()
