"""The outcome of a rollout's request, classified by fragments of SQL about a row `r` of `requests`.

A row belongs to an arm when it was allocated to it: not forced (`alloc_unit` 0) and not by a substitute of the unit its
rollout asks for (`alloc_fallback`). What it is then, in the order of the pipeline (`ERROR_CODES` has every code):

| How the request ended | Row | Request | Unanswered | Judged | Failed |
|---|---|---|---|---|---|
| a variable is missing, unknown or of the wrong kind | error 422 | yes | missing_variable | | |
| the client's texts: personal data, injection, topic | error 400, no provider | | | | |
| the whole request: too long, a blocked tool | error 400 | yes | guardrail | | |
| nobody serves the model, or its vendor lacks it | error 404 `model_not_found` | yes | model_not_found | | |
| limit of requests a minute, the project's budget | error 429 | | | | |
| budget of a session, user or key | error 429 | yes | budget | | |
| limit of tokens a minute, of requests at once | error 429 | yes | tokens_per_minute, concurrency | | |
| answered by the cache | success, `cache_status` hit | | | | |
| the cache has an answer of an arm | `question_cached` | no: uncompared | | | |
| a parameter that no provider takes | error 400 `unsupported_parameter` | yes | provider_refused | | |
| the provider rejects it, finds it too long, filters it | error 400 | yes | provider_refused | yes | yes |
| the provider fails, takes too long, has no quota left | error 500, 503 | yes | provider_failed | yes | yes |
| its answer is none, and the retries are used up | error 500 `provider_error` | yes | provider_failed | yes | yes |
| a stream breaks | error, with the codes above | yes | provider_failed | yes | yes |
| the answer: a topic, a tool | error 400, with a provider | yes | guardrail | | |
| the answer: graded too low | error 400 `low_quality` | yes | low_quality | | |
| the answer: filtered by the provider | success, `finish_reason` content_filter | yes | provider_refused | yes | yes |
| the client leaves before the first output, or late | cancelled | yes | client_left | | |
| the client leaves otherwise | cancelled | yes | | | |
| the worker is stopped or killed | interrupted | yes | interrupted | yes | yes |
| the gateway fails | error 500 `internal_error` | yes | gateway_failed | yes | yes |
| any other fault of the client's | error 4xx | yes | invalid_request | | |
| answered | success | yes | | yes | |
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from typing import NamedTuple

from analytics.request_log.sources import OF_USERS

TARGET, BASELINE = "target", "baseline"
# A verdict rests on these rows: none may be missing that any server has stored.
FRESH = ("requests",)

# Columns are qualified (r.), since an unqualified name would mean the alias of the same name.
OF_ROLLOUT = """r.project_id = {project:UUID} AND r.rollout_id = {rollout:UUID}
    AND r.variant IN ('target', 'baseline')"""
IN_TIME = "r.ts >= {start:DateTime64(6, 'UTC')} AND r.ts < {end:DateTime64(6, 'UTC')}"

OF_CLIENTS = f"r.source IN {OF_USERS}"
"""No rollout counts the requests of other sources, which choose their versions themselves."""
IN_ARM = "(r.alloc_unit != 0 AND NOT r.alloc_fallback)"
"""The request was allocated to its arm, by the unit that its rollout asks for."""


# The meaning of the error codes of requests to models for a rollout: which of them count, and why a request that ended
# with one is unanswered.
#
# | Refusal | A version's part in it | Counts |
# |---|---|---|
# | budget of a session, user, key or team | a dearer or longer version uses it up sooner | unanswered |
# | the project's budget of a month | none: it refuses both arms alike | no |
# | requests a minute | none: a version has no part in how many requests come | no |
# | tokens a minute | its own text and the length of its answers | unanswered |
# | requests at the same time | the time that its answers take | unanswered |
# | the client's own texts, before a provider was called | none | no |
#
# Every code of docs/errors.md that a request to a model may get has its row here.


class Counts(Enum):
    ALWAYS = "always"
    NEVER = "never"
    AFTER_CALL = "after a provider was called"


class ErrorCode(NamedTuple):
    """`reason` is why the request is unanswered.

    The service or the provider answers for a status of 500 or more, and for one below if the code `is_failure`: with
    another prompt the provider might have accepted the request.
    """

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
    ("internal_error service_unavailable limits_unavailable service_restarting", ErrorCode("gateway_failed")),
    # The client's own faults: most of them are found before a version is chosen, and then belong to no arm.
    ("invalid_json missing_field invalid_value empty_messages too_many_messages", ErrorCode("invalid_request")),
    ("message_too_large body_too_large request_timeout", ErrorCode("invalid_request")),
    ("missing_api_key invalid_api_key invalid_project scope_missing project_mismatch", ErrorCode("invalid_request")),
    ("not_found method_not_allowed websocket_unsupported", ErrorCode("invalid_request")),
    ("prompt_config_not_found prompt_label_not_found prompt_version_not_found", ErrorCode("invalid_request")),
)


def having(is_wanted: Callable[[ErrorCode], bool]) -> str:
    return f"({', '.join(repr(code) for code, row in ERROR_CODES.items() if is_wanted(row))})"


def reason_of(code: str) -> str:
    reasons = ", ".join(repr(row.reason) for row in ERROR_CODES.values())
    codes = ", ".join(map(repr, ERROR_CODES))
    return f"transform(toString({code}), [{codes}], [{reasons}], '{OTHER}')"


NOT_OF_THE_VERSION = f"""(
    r.outcome = 'error'
    AND (r.error_code IN {having(lambda row: row.counts is Counts.NEVER)}
        OR (r.provider = '' AND r.error_code IN {having(lambda row: row.counts is Counts.AFTER_CALL)}))
)"""
"""The request was refused for a reason that no version of a prompt affects: a limit, or the client's own texts."""

FORCED, OTHER_UNIT, CACHE_HIT = "forced", "other_unit", "cache_hit"
LEFT_OUT = f"""multiIf(
    r.variant != '' AND r.alloc_unit = 0, '{FORCED}',
    r.alloc_fallback, '{OTHER_UNIT}',
    r.cache_status = 'hit', '{CACHE_HIT}',
    {NOT_OF_THE_VERSION}, toString(r.error_code),
    ''
)"""
"""The reason why the request does not count at all, empty for one that does: an error code, or one of the names
above."""

COUNTING = f"({LEFT_OUT} = '')"
UNCOMPARED = f"({COUNTING} AND r.question_cached)"
"""The cache had an answer to the question from one of the arms. Popular questions are cached first, and in the arm with
more traffic: hits are left out, so that each arm would be left with questions of another kind."""
REQUEST = f"({COUNTING} AND NOT r.question_cached)"
"""The request is compared."""
ANSWERED = f"({REQUEST} AND r.outcome = 'success')"
PRICED = f"({ANSWERED} AND r.cost_known)"
COST = "(toFloat64(r.cost_usd) * 1e10)"
"""The cost in 10^-10 US dollars."""

BAD = f"""(
    r.finish_reason = 'content_filter'
    OR (r.outcome IN ('error', 'interrupted')
        AND (r.status_code < 400 OR r.status_code >= 500
            OR r.error_code IN {having(lambda row: row.is_failure)}))
)"""
"""The service or the provider failed. A provider's 400 counts too: with another prompt it might have been accepted."""
COUNTED = f"(r.outcome = 'success' OR (r.outcome != 'cancelled' AND {BAD}))"
"""The service or the provider answers for the outcome, and not the client by leaving or by a fault of its own."""
JUDGED = f"({REQUEST} AND {COUNTED})"
FAILED = f"({JUDGED} AND {BAD})"

LONG_WAIT_MS = 10_000.0
"""The wait after which a client that leaves had waited for too long, unless the usual latency is known."""
NO_ANSWER = """(
    r.outcome IN ('error', 'interrupted') OR r.finish_reason = 'content_filter'
    OR (r.outcome = 'cancelled' AND (r.ttft_ms = 0 OR r.latency_ms > {long_wait_ms:Float64}))
)"""
"""The user got no proper answer. Takes the parameter `long_wait_ms`."""
UNANSWERED = f"({REQUEST} AND {NO_ANSWER})"
REASON = f"""multiIf(
    r.outcome = 'cancelled', 'client_left',
    r.outcome = 'interrupted', 'interrupted',
    r.outcome = 'success', 'provider_refused',
    {reason_of("r.error_code")}
)"""
"""The reason why a request is unanswered."""

CONTRACT = f"({ANSWERED} AND r.contract_violation)"
TRUNCATED = f"({ANSWERED} AND r.finish_reason = 'length')"
FALLBACK = f"({ANSWERED} AND r.other_used)"
EMPTY = f"({ANSWERED} AND r.empty_answer)"
STOPPED = f"({REQUEST} AND r.outcome = 'cancelled' AND r.ttft_ms > 0)"
"""The client left after the first output."""
COUNTS: Mapping[str, str] = {
    "requests": REQUEST, "uncompared": UNCOMPARED, "unanswered": UNANSWERED, "judged": JUDGED, "errors": FAILED,
    "answered": ANSWERED, "priced": PRICED, "contract": CONTRACT, "truncated": TRUNCATED, "fallback": FALLBACK,
    "empty": EMPTY, "stopped": STOPPED,
}  # fmt: skip
"""What is counted, by the name of its number."""
SIGNALS = ("answered", "contract", "truncated", "fallback", "empty", "stopped")


def counts(*names: str) -> str:
    return ", ".join(f"countIf({COUNTS[name]}) AS {name}" for name in names)


def counts_by(key: str, condition: str) -> str:
    return f"sumMapIf(map({key}, toUInt64(1)), {condition})"


REASONS = counts_by(REASON, UNANSWERED)
LEFT_OUT_BY_REASON = counts_by(LEFT_OUT, f"{LEFT_OUT} != ''")


def bin_of(value: str) -> str:
    """SQL for the bin of a value, as in `rollouts.evaluation.statistics.grid`. Needs the parameter `log_ratio`."""
    return f"if({value} <= 0, 0, toUInt32(1 + floor(log(greatest({value}, 1)) / {{log_ratio:Float64}} + 0.5)))"


def histograms(condition: str = "true", suffix: str = "") -> str:
    return f"""
    {counts_by(bin_of("r.latency_ms"), f"{ANSWERED} AND {condition}")} AS latency{suffix},
    {counts_by(bin_of(COST), f"{PRICED} AND {condition}")} AS cost{suffix}"""
