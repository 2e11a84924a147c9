"""The meaning of the error codes of requests to models for a rollout: which of them count, and why a request that ended
with one is unanswered.

| Refusal | A version's part in it | Counts |
|---|---|---|
| budget of a session, user, key or team | a dearer or longer version uses it up sooner | unanswered |
| the project's budget of a month | none: it refuses both arms alike | no |
| requests a minute | none: a version has no part in how many requests come | no |
| tokens a minute | its own text and the length of its answers | unanswered |
| requests at the same time | the time that its answers take | unanswered |
| the client's own texts, before a provider was called | none | no |

Every code of docs/errors.md that a request to a model may get has its row here.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple


class Counts(Enum):
    """When a request with an error code counts."""

    ALWAYS = "always"
    NEVER = "never"
    AFTER_CALL = "after a provider was called"


class ErrorCode(NamedTuple):
    """The meaning of one code. `reason` is why the request is unanswered. The service or the provider answers for a
    status of 500 or more, and for one below if the code `is_failure`: with another prompt the provider might have
    accepted the request."""

    reason: str
    counts: Counts = Counts.ALWAYS
    is_failure: bool = False


OTHER = "other"
"""The reason of a code that has no row, as in a log that is older than the code's end."""


def _rows(*rows: tuple[str, ErrorCode]) -> Mapping[str, ErrorCode]:
    return {code: row for codes, row in rows for code in codes.split()}


ERROR_CODES = _rows(
    ("session_budget_exceeded user_monthly_budget_exceeded", ErrorCode("budget")),
    ("key_monthly_budget_exceeded key_total_budget_exceeded", ErrorCode("budget")),
    ("team_monthly_budget_exceeded team_total_budget_exceeded", ErrorCode("budget")),
    ("monthly_budget_exceeded", ErrorCode("budget", Counts.NEVER)),
    ("requests_per_minute key_requests_per_minute", ErrorCode("requests_per_minute", Counts.NEVER)),
    ("user_requests_per_minute team_requests_per_minute", ErrorCode("requests_per_minute", Counts.NEVER)),
    ("tokens_per_minute key_tokens_per_minute", ErrorCode("tokens_per_minute")),
    ("user_tokens_per_minute team_tokens_per_minute", ErrorCode("tokens_per_minute")),
    ("key_concurrent_requests user_concurrent_requests team_concurrent_requests", ErrorCode("concurrency")),
    # A topic that is blocked in requests is refused before a provider is called, one that is blocked in answers
    # afterwards.
    ("blocked_topic pii_detected prompt_injection", ErrorCode("guardrail", Counts.AFTER_CALL)),
    ("blocked_tool prompt_too_long", ErrorCode("guardrail")),
    ("low_quality", ErrorCode("low_quality")),
    ("missing_variable invalid_variable unknown_variable", ErrorCode("missing_variable")),
    ("prompt_include_broken", ErrorCode("broken_prompt")),
    ("model_not_found", ErrorCode("model_not_found")),
    ("model_not_allowed", ErrorCode("model_not_allowed")),
    ("provider_rejected context_length_exceeded content_filter", ErrorCode("provider_refused", is_failure=True)),
    ("unsupported_parameter", ErrorCode("provider_refused")),
    ("provider_error provider_unavailable provider_timeout insufficient_quota", ErrorCode("provider_failed")),
    ("credential_unreadable", ErrorCode("provider_failed")),
    ("internal_error service_unavailable", ErrorCode("gateway_failed")),
    # The client's own faults: most of them are found before a version is chosen, and then belong to no arm.
    ("invalid_json missing_field invalid_value empty_messages too_many_messages", ErrorCode("invalid_request")),
    ("message_too_large body_too_large request_timeout", ErrorCode("invalid_request")),
    ("missing_api_key invalid_api_key invalid_project scope_missing project_mismatch", ErrorCode("invalid_request")),
    ("not_found method_not_allowed websocket_unsupported", ErrorCode("invalid_request")),
    ("prompt_config_not_found prompt_label_not_found prompt_version_not_found", ErrorCode("invalid_request")),
)


def having(is_wanted: Callable[[ErrorCode], bool]) -> str:
    """Returns the codes as a list of SQL."""
    return f"({', '.join(repr(code) for code, row in ERROR_CODES.items() if is_wanted(row))})"


def reason_of(code: str) -> str:
    """Returns the SQL for the reason of the code that the expression `code` has."""
    reasons = ", ".join(repr(row.reason) for row in ERROR_CODES.values())
    codes = ", ".join(map(repr, ERROR_CODES))
    return f"transform(toString({code}), [{codes}], [{reasons}], '{OTHER}')"
