from __future__ import annotations

from collections.abc import Iterator, Mapping

from core.models import Limited
from core.ui.formats import number

GUARDRAILS: Mapping[str, str] = {
    "prompt_too_long": "Prompt too long",
    "blocked_tool": "Blocked tool",
    "blocked_topic": "Blocked phrase",
    "pii": "Personal data",
    "prompt_injection": "Prompt injection",
    "exfiltration_url": "Exfiltrating link",
    "low_quality": "Low quality",
    "spotlighting": "Spotlighting",
}
LIMITS: Mapping[str, str] = {
    "requests_per_minute": "Requests per minute",
    "tokens_per_minute": "Tokens per minute",
    "monthly_budget_exceeded": "Budget of the month",
    "session_budget_exceeded": "Budget of a session",
    "team_requests_per_minute": "Requests per minute of a team",
    "team_tokens_per_minute": "Tokens per minute of a team",
    "team_concurrent_requests": "Concurrent requests of a team",
    "team_monthly_budget_exceeded": "Budget of the month of a team",
    "team_total_budget_exceeded": "Total budget of a team",
    "key_requests_per_minute": "Requests per minute of a key",
    "key_tokens_per_minute": "Tokens per minute of a key",
    "key_concurrent_requests": "Concurrent requests of a key",
    "key_monthly_budget_exceeded": "Budget of the month of a key",
    "key_total_budget_exceeded": "Total budget of a key",
    "user_requests_per_minute": "Requests per minute of an end user",
    "user_tokens_per_minute": "Tokens per minute of an end user",
    "user_concurrent_requests": "Concurrent requests of an end user",
    "user_monthly_budget_exceeded": "Budget of the month of an end user",
}


def rates_in_words(row: Limited) -> Iterator[str]:
    for limit, unit in (
        (row.rate_limit_rpm, "requests a minute"),
        (row.rate_limit_tpm, "tokens a minute"),
        (row.max_concurrent_requests, "at the same time"),
    ):
        if limit is not None:
            yield f"{number(limit)} {unit}"
