"""The names of guardrails and limits in plain words."""

from __future__ import annotations

from collections.abc import Mapping

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
