from __future__ import annotations

from collections.abc import Mapping

_WORDS = {
    "judge_failed": "judge failed",
    "unknown_cost": "highest cost not known",
    "name_too_long": "name too long",
    "too_many_tokens": "too many tokens for a minute",
    "budget": "budget spent",
    "no_text": "no text",
    "masked": "masked by a guardrail",
    "too_old": "too old",
    "disabled": "paused or archived",
}


def reasons_in_words(by: Mapping[str, int]) -> str:
    """Formats counts by reason, the most frequent first: "judge failed 9, no text 3"."""
    most_first = sorted(by.items(), key=lambda one: (-one[1], one[0]))
    return ", ".join(f"{_WORDS.get(reason, reason.replace('_', ' '))} {count:,}" for reason, count in most_first)
