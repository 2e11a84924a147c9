"""The findings of guardrails as request records store them. A verdict never holds the text that was found."""

from __future__ import annotations

from enum import StrEnum

import msgspec

# A record's attribute of this name holds its verdicts: a JSON array of `GuardrailVerdict`.
VERDICTS = "guardrails"


class GuardrailStage(StrEnum):
    INPUT = "input"
    OUTPUT = "output"


class GuardrailAction(StrEnum):
    FLAGGED = "flagged"  # The finding was recorded, and the request went on as it was.
    BLOCKED = "blocked"
    MASKED = "masked"
    CHANGED = "changed"
    PASSED = "passed"  # A judged answer was good enough (low_quality).
    SKIPPED = "skipped"  # The answer could not be judged (low_quality).


class GuardrailVerdict(msgspec.Struct, frozen=True, omit_defaults=True):
    """One finding of a guardrail in one request.

    `detail` is a kind of personal data, a topic, a tool or names of rules, never a quotation. `score`, from 0 to 1, is
    the guardrail's confidence; for low_quality it is the judge's score divided by 100.
    """

    guardrail: str
    stage: GuardrailStage
    action: GuardrailAction
    detail: str = ""
    score: float = 1.0


decode_verdicts = msgspec.json.Decoder(list[GuardrailVerdict]).decode
"""Reads what the attribute holds. Raises msgspec.DecodeError."""


def is_masked(verdicts: str) -> bool:
    """Returns whether a guardrail masked something. Verdicts that cannot be read count as masked."""
    try:
        found = decode_verdicts(verdicts) if verdicts else []
    except msgspec.DecodeError:
        return True
    return any(one.action is GuardrailAction.MASKED for one in found)


class Guardrail(StrEnum):
    """The names of guardrails; those that block requests are also error codes."""

    PROMPT_TOO_LONG = "prompt_too_long"
    BLOCKED_TOPIC = "blocked_topic"
    BLOCKED_TOOL = "blocked_tool"
    PII = "pii"
    PROMPT_INJECTION = "prompt_injection"
    EXFILTRATION_URL = "exfiltration_url"
    LOW_QUALITY = "low_quality"
    SPOTLIGHTING = "spotlighting"
