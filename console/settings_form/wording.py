"""The settings in plain words: their names, and their values as people read them."""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from core.ui.formats import money, number

LABELS: Mapping[str, str] = {
    "introspection_enabled": "Ask models for their reasoning",
    "thinking_budget_tokens": "Reasoning tokens to ask for",
    "fallback_enabled": "Let another provider answer when the first cannot",
    "fallback_order": "Order of providers to fall back to",
    "preferred_models": "Preferred models, best first",
    "retry_enabled": "Ask a provider again after a passing failure",
    "retry_max_attempts": "Attempts at one provider",
    "rate_limit_enabled": "Limit requests and tokens per minute",
    "rate_limit_rpm": "Requests per minute",
    "rate_limit_tpm": "Tokens per minute",
    "monthly_budget_usd": "Budget per month, US dollars",
    "budget_alert_enabled": "Alert at 50, 80 and 100 % of the budget",
    "budget_hard_stop": "Refuse requests once the budget is used up",
    "session_budget_usd": "Budget per session, US dollars",
    "end_user_monthly_budget_usd": "Budget per month of every end user, US dollars",
    "end_user_rpm": "Requests per minute of every end user",
    "end_user_tpm": "Tokens per minute of every end user",
    "end_user_max_concurrent": "Requests of every end user at the same time",
    "cache_ttl_seconds": "Seconds for which an answer is given again",
    "prompt_cache_markers": "Mark prompts for the vendor's cache",
    "log_content": "Keep the texts of requests and answers",
    "retention_days": "Days for which a request is kept",
    "judge_model": "Model that judges answers",
    "agent_enabled": "Offer the in-app agent",
    "agent_scopes": "What the agent may read",
    "agent_model": "Model behind the agent",
    "alert_webhook_url": "Address that alerts are posted to",
    "alert_emails": "Addresses that alerts are mailed to",
    "guardrails_trust_mode": "What follows from a finding",
    "guardrails_blocked_input_topics": "Blocked phrases in requests",
    "guardrails_blocked_output_topics": "Blocked phrases in answers",
    "guardrails_max_prompt_tokens": "Longest prompt, in tokens",
    "guardrails_pii_block_on_detect": "Refuse requests with personal data",
    "guardrails_prompt_injection_detection": "Refuse prompt injections",
    "guardrails_spotlighting_enabled": "Mark texts of tools and documents as data",
    "guardrails_document_delimiters": "Words that a document in a message begins and ends with",
    "guardrails_mask_output_pii": "Mask personal data in answers",
    "guardrails_min_quality_score": "Lowest quality of an answer, 0 to 100",
    "guardrails_blocked_tools": "Blocked tools",
    "guardrails_block_exfiltration_urls": "Take out links that carry the conversation elsewhere",
}
TRUST_MODES: Mapping[str, str] = {
    "off": "off: look at nothing",
    "monitor": "monitor: record, refuse nothing",
    "enforce": "enforce: refuse, mask, take out",
}
HELP: Mapping[str, str] = {
    "thinking_budget_tokens": "0 leaves it to the model.",
    "fallback_order": "Providers, one a line.",
    "preferred_models": "What the model name auto stands for. One a line.",
    "retry_max_attempts": "The first one included.",
    "rate_limit_rpm": "Empty for any number.",
    "rate_limit_tpm": "Empty for any number.",
    "monthly_budget_usd": "Of a calendar month in UTC. Empty for none.",
    "session_budget_usd": "For each x-svc-session-id. Empty for none.",
    "end_user_monthly_budget_usd": "Of x-svc-user-id or the body's user. Empty for none.",
    "end_user_rpm": "Empty for any number.",
    "end_user_tpm": "Empty for any number.",
    "end_user_max_concurrent": "Empty for any number.",
    "cache_ttl_seconds": "0: only where a request says so.",
    "prompt_cache_markers": "For Claude and Nova, which keep only what is marked. A client's own markers count alone.",
    "retention_days": "From its arrival on.",
    "judge_model": "Empty for none.",
    "agent_model": "Empty for the first preferred one.",
    "alert_emails": "One a line.",
    "guardrails_blocked_input_topics": "One a line.",
    "guardrails_blocked_output_topics": "One a line.",
    "guardrails_blocked_tools": "Neither offered nor called. One a line.",
    "guardrails_max_prompt_tokens": "Estimated by four bytes a token. Empty for any.",
    "guardrails_spotlighting_enabled": "In enforce alone.",
    "guardrails_document_delimiters": "Two words, such as <document> </document>. One pair a line.",
    "guardrails_min_quality_score": "What the judging model has to give. Empty for any.",
}
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

_UNLIMITED = frozenset(
    {
        "rate_limit_rpm",
        "rate_limit_tpm",
        "monthly_budget_usd",
        "session_budget_usd",
        "end_user_monthly_budget_usd",
        "end_user_rpm",
        "end_user_tpm",
        "end_user_max_concurrent",
    }
)


def label_of(field: str) -> str:
    return LABELS.get(field, field.removeprefix("guardrails_").replace("_", " "))


def value_in_words(field: str, value: Any) -> str:
    """Returns a setting's value, as `settings_values` has it, for people."""
    if isinstance(value, bool):
        return "on" if value else "off"
    if value is None or value == "":
        return "no limit" if field in _UNLIMITED else "none"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value)) or "none"
    if field == "guardrails_trust_mode":
        return TRUST_MODES.get(value, str(value))
    if field.endswith("_usd"):
        return money(Decimal(str(value)))
    return number(value) if isinstance(value, int | float) else str(value)


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings with each guardrail as a field `guardrails_<name>`, as forms and diffs show them."""
    plain = {name: value for name, value in values.items() if name != "guardrails"}
    return plain | {f"guardrails_{name}": value for name, value in (values.get("guardrails") or {}).items()}
