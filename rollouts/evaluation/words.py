"""Figures, durations and reasons in words for people. None of them is an identifier."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

_MAX_SHOWN = math.log(1e9)
_SMALLEST_SHARE = 0.001
_FEW, _THOUSAND = 10, 1000

_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "missing_variable": "a variable is missing",
        "model_not_found": "nobody serves the model",
        "guardrail": "refused by a guardrail",
        "low_quality": "graded too low",
        "provider_refused": "refused by the provider",
        "provider_failed": "the provider failed",
        "client_left": "the client left",
        "still_open": "no answer for too long",
        "interrupted": "the worker stopped",
        "budget": "a budget is used up",
        "tokens_per_minute": "too many tokens a minute",
        "concurrency": "too many requests at once",
        "model_not_allowed": "the key may not call the model",
        "broken_prompt": "an included prompt is missing",
        "gateway_failed": "the gateway failed",
        "invalid_request": "the request is invalid",
        "other": "other faults",
    }
)


_LEFT_OUT: Mapping[str, str] = MappingProxyType(
    {
        "uncompared": "asked before: in a cache",
        "cache_hit": "answered from the cache",
        "forced": "the version was forced",
        "other_unit": "no user or session to allocate by",
        "monthly_budget_exceeded": "refused: the project's budget",
        "requests_per_minute": "refused: requests per minute",
        "pii_detected": "refused: personal data",
        "prompt_injection": "refused: prompt injection",
        "blocked_topic": "refused: a blocked topic",
    }
)


def odds(evidence: float) -> str:
    return "over 1e9" if evidence > _MAX_SHOWN else f"{math.exp(evidence):.3g}"


def in_words(minutes: float) -> str:
    for unit, size, until in (("minute", 1, 90), ("hour", 60, 48 * 60)):
        if minutes < until:
            number = max(1, math.ceil(minutes / size))
            return f"{number} {unit}{'' if number == 1 else 's'}"
    return f"{math.ceil(minutes / (24 * 60))} days"


def share(value: float) -> str:
    # A weighted mean of values that are all 1 may be a little less.
    value = round(value, 12)
    if 0 < value < _SMALLEST_SHARE:
        return "under 0.1 %"
    if 1 - _SMALLEST_SHARE < value < 1:
        return "over 99.9 %"
    return f"{value * 100:.0f} %" if value in (0, 1) else f"{value * 100:.1f} %"


def milliseconds(value: float) -> str:
    if value >= _THOUSAND - 0.5:
        return f"{value / _THOUSAND:.1f} s"
    return f"{value:.1f} ms" if 0 < value < _FEW else f"{value:.0f} ms"


def dollars(value: float) -> str:
    if value == 0:
        return "$0"
    return f"${value:.{max(2, 1 - math.floor(math.log10(value)))}f}"


def about(number: float) -> str:
    size = 10 ** math.floor(math.log10(number))
    return f"{round(number / size) * size:,.0f}"


def first_sentence(text: str) -> str:
    first, dot, _ = text.partition(". ")
    return f"{first}." if dot else text


def reason(code: str) -> str:
    return _REASONS.get(code, code.replace("_", " "))


def left_out(code: str) -> str:
    return _LEFT_OUT.get(code, f"refused: {code.replace('_', ' ')}")


def named_reasons(reasons: Mapping[str, int]) -> str:
    ordered = sorted(reasons.items(), key=lambda item: (-item[1], item[0]))
    return ", ".join(f"{reason(code)} ({count:,})" for code, count in ordered if count)
