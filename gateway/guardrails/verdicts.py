"""What a guardrail found: the record's words for it. A verdict never holds the text that was found."""

from __future__ import annotations

from enum import StrEnum

import msgspec

# Under this name a record's attributes hold its verdicts: a JSON array of `GuardrailVerdict`.
VERDICTS = "guardrails"


class GuardrailStage(StrEnum):
    INPUT = "input"
    OUTPUT = "output"


class GuardrailAction(StrEnum):
    FLAGGED = "flagged"  # seen and recorded; the request went on as it was
    BLOCKED = "blocked"
    MASKED = "masked"
    CHANGED = "changed"
    PASSED = "passed"  # of low_quality: it was judged, and good enough
    SKIPPED = "skipped"  # of low_quality: it could not be judged


class GuardrailVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """`guardrail` is a name of `Guardrail`; `detail` a kind of PII, a topic, a tool or names of rules, never what the
    text says; `score` from 0 to 1, how sure the guardrail is (of low_quality: the judge's score divided by 100)."""

    guardrail: str
    stage: GuardrailStage
    action: GuardrailAction
    detail: str = ""
    score: float = 1.0


class Guardrail(StrEnum):
    """The names of guardrails; those that block are also the error codes of design, section 5."""

    PROMPT_TOO_LONG = "prompt_too_long"
    BLOCKED_TOPIC = "blocked_topic"
    BLOCKED_TOOL = "blocked_tool"
    PII = "pii"
    PROMPT_INJECTION = "prompt_injection"
    EXFILTRATION_URL = "exfiltration_url"
    LOW_QUALITY = "low_quality"
    SPOTLIGHTING = "spotlighting"
