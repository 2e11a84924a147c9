"""The outcome of a rollout's request, classified by fragments of SQL about a row `r` of `requests`.

A row belongs to an arm when it was allocated to it: not forced (`alloc_unit` 0) and not by a substitute of the unit its
rollout asks for (`alloc_fallback`). What it is then, in the order of the pipeline:

| How the request ended | Row | Request | Unanswered | Judged | Failed |
|---|---|---|---|---|---|
| a variable is missing, unknown or of the wrong kind | error 422 | yes | missing_variable | | |
| the client's texts: personal data, injection, topic | error 400, no provider | | | | |
| the whole request: too long, a blocked tool | error 400 | yes | guardrail | | |
| nobody serves the model, or its vendor lacks it | error 404 `model_not_found` | yes | model_not_found | | |
| limit of requests, budget | error 429 | | | | |
| limit of tokens: a version's own text takes part of it | error 429 `tokens_per_minute` | yes | other | | |
| answered by the cache | success, `cache_status` hit | | | | |
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
| the gateway fails | error 500 `internal_error` | yes | other | yes | yes |
| any other fault of the client's | error 4xx | yes | other | | |
| answered | success | yes | | yes | |
"""

from __future__ import annotations

TARGET, BASELINE = "target", "baseline"

# Columns are qualified (r.), since an unqualified name would mean the alias of the same name.
IN_ARM = """r.project_id = {project:UUID} AND r.rollout_id = {rollout:UUID}
    AND r.variant IN ('target', 'baseline') AND r.alloc_unit != 0"""
IN_TIME = "r.ts >= {start:DateTime64(6, 'UTC')} AND r.ts < {end:DateTime64(6, 'UTC')}"

HIT = "(r.cache_status = 'hit')"
ANSWERED = "(r.outcome = 'success' AND r.cache_status != 'hit')"
PRICED = f"({ANSWERED} AND r.cost_known)"
COST = "(toFloat64(r.cost_usd) * 1e10)"
"""The cost in 10^-10 US dollars."""

BAD = """(
    r.finish_reason = 'content_filter'
    OR (r.outcome IN ('error', 'interrupted')
        AND (r.status_code < 400 OR r.status_code >= 500
            OR r.error_code IN ('provider_rejected', 'context_length_exceeded', 'content_filter')))
)"""
"""The service or the provider failed. A provider's 400 counts too: with another prompt it might have been accepted."""
COUNTED = f"(r.outcome = 'success' OR (r.outcome != 'cancelled' AND {BAD}))"
"""The service or the provider answers for the outcome, and not the client by leaving or by a fault of its own."""
JUDGED = f"(NOT {HIT} AND {COUNTED})"
FAILED = f"({JUDGED} AND {BAD})"

# A topic that is blocked in requests is refused before a provider is chosen, one that is blocked in answers afterwards.
NOT_OF_THE_VERSION = """(
    r.outcome = 'error'
    AND (r.error_code IN ('requests_per_minute', 'monthly_budget_exceeded', 'session_budget_exceeded')
        OR (r.error_type = 'guardrail_error' AND r.provider = ''
            AND r.error_code IN ('pii_detected', 'prompt_injection', 'blocked_topic')))
)"""
"""The request was refused for a reason that no version of a prompt affects: a limit, or the client's own texts."""
REQUEST = f"(NOT {HIT} AND NOT {NOT_OF_THE_VERSION})"
LONG_WAIT_MS = 10_000.0
"""The wait after which a client that leaves had waited for too long, unless the usual latency is known."""
UNANSWERED = f"""({REQUEST} AND (
    r.outcome IN ('error', 'interrupted') OR r.finish_reason = 'content_filter'
    OR (r.outcome = 'cancelled' AND (r.ttft_ms = 0 OR r.latency_ms > {{long_wait_ms:Float64}}))
))"""
"""The user got no proper answer. Takes the parameter `long_wait_ms`."""
REASON = """multiIf(
    r.outcome = 'cancelled', 'client_left',
    r.outcome = 'interrupted', 'interrupted',
    r.outcome = 'success', 'provider_refused',
    r.status_code = 422, 'missing_variable',
    r.error_code = 'model_not_found', 'model_not_found',
    r.error_code = 'low_quality', 'low_quality',
    r.error_type = 'guardrail_error', 'guardrail',
    r.error_code IN ('provider_rejected', 'context_length_exceeded', 'content_filter', 'unsupported_parameter'),
        'provider_refused',
    r.error_code IN (
        'provider_error', 'provider_unavailable', 'provider_timeout', 'insufficient_quota', 'credential_unreadable'
    ), 'provider_failed',
    'other'
)"""
"""The reason why a request is unanswered."""
REASONS = f"sumMapIf(map({REASON}, toUInt64(1)), {UNANSWERED})"


def bin_of(value: str) -> str:
    """Returns the SQL for the bin of a value, as `rollouts.evaluation.statistics.grid` has it. Takes the parameter
    `log_ratio`."""
    return f"if({value} <= 0, 0, toUInt32(1 + floor(log(greatest({value}, 1)) / {{log_ratio:Float64}} + 0.5)))"


HISTOGRAMS = f"""
    sumMapIf(map({bin_of("r.latency_ms")}, toUInt64(1)), {ANSWERED}) AS latency,
    sumMapIf(map({bin_of(COST)}, toUInt64(1)), {PRICED}) AS cost"""
