"""The settings object of a project: its path, its defaults, and an object in which every setting differs from them."""

from __future__ import annotations

from typing import Any

from gateway.models import AGENT_SCOPES

PATH = "/api/llm/settings"
GUARDRAILS: dict[str, Any] = {
    "trust_mode": "off",
    "blocked_input_topics": [],
    "blocked_output_topics": [],
    "max_prompt_tokens": None,
    "pii_block_on_detect": False,
    "prompt_injection_detection": False,
    "spotlighting_enabled": False,
    "document_delimiters": [],
    "mask_output_pii": False,
    "min_quality_score": None,
    "blocked_tools": [],
    "block_exfiltration_urls": False,
}
DEFAULTS = {
    "introspection_enabled": False,
    "thinking_budget_tokens": 0,
    "fallback_enabled": True,
    "fallback_order": [],
    "preferred_models": [],
    "retry_enabled": True,
    "retry_max_attempts": 2,
    "rate_limit_enabled": False,
    "rate_limit_rpm": None,
    "rate_limit_tpm": None,
    "monthly_budget_usd": None,
    "budget_alert_enabled": False,
    "budget_hard_stop": False,
    "session_budget_usd": None,
    "end_user_monthly_budget_usd": None,
    "end_user_rpm": None,
    "end_user_tpm": None,
    "end_user_max_concurrent": None,
    "guardrails": GUARDRAILS,
    "cache_ttl_seconds": 0,
    "prompt_cache_markers": False,
    "log_content": True,
    "retention_days": 400,
    "judge_model": "",
    "agent_enabled": True,
    "agent_scopes": list(AGENT_SCOPES),
    "agent_model": "",
    "alert_webhook_url": "",
    "alert_emails": [],
    "warnings": [],
}
FULL = {
    "introspection_enabled": True,
    "thinking_budget_tokens": 2048,
    "fallback_enabled": False,
    "fallback_order": ["anthropic", "openai"],
    "preferred_models": ["gpt-4o", "claude-sonnet-4-5"],
    "retry_enabled": False,
    "retry_max_attempts": 5,
    "rate_limit_enabled": True,
    "rate_limit_rpm": 60,
    "rate_limit_tpm": 100_000,
    "monthly_budget_usd": 12.3456789012,
    "budget_alert_enabled": True,
    "budget_hard_stop": True,
    "session_budget_usd": 0.01,
    "end_user_monthly_budget_usd": 2.5,
    "end_user_rpm": 10,
    "end_user_tpm": 20_000,
    "end_user_max_concurrent": 3,
    "guardrails": {
        "trust_mode": "enforce",
        "blocked_input_topics": ["stock tips"],
        "blocked_output_topics": ["Börse", "股票"],
        "max_prompt_tokens": 1000,
        "pii_block_on_detect": True,
        "prompt_injection_detection": True,
        "spotlighting_enabled": True,
        "document_delimiters": ["<document> </document>"],
        "mask_output_pii": True,
        "min_quality_score": 62.5,
        "blocked_tools": ["shell"],
        "block_exfiltration_urls": True,
    },
    "cache_ttl_seconds": 60,
    "prompt_cache_markers": True,
    "log_content": False,
    "retention_days": 30,
    "judge_model": "gpt-4o-mini",
    "agent_enabled": False,
    "agent_scopes": ["llm:read"],
    "agent_model": "gpt-4o",
    "alert_webhook_url": "https://example.org/hook",
    "alert_emails": ["ops@example.org"],
}


def without_warnings(shown: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in shown.items() if name != "warnings"}
