from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client.core import HistogramMetricFamily, Metric

from analytics.totals.figures import DURATION_MS, OVERHEAD_MS, Distribution, Totals, UsageFigures
from core.processes.monitoring import PREFIX, counter

_SETS = ("project", "provider", "model")
# The error codes of refusals by limits (docs/limits.md), with the limit that each code is about.
_LIMITS = {
    "requests_per_minute": "requests_per_minute",
    "tokens_per_minute": "tokens_per_minute",
    "session_budget_exceeded": "session_budget",
    "monthly_budget_exceeded": "monthly_budget",
    "team_requests_per_minute": "team_requests_per_minute",
    "team_tokens_per_minute": "team_tokens_per_minute",
    "team_concurrent_requests": "team_concurrent_requests",
    "team_monthly_budget_exceeded": "team_monthly_budget",
    "team_total_budget_exceeded": "team_total_budget",
    "key_requests_per_minute": "key_requests_per_minute",
    "key_tokens_per_minute": "key_tokens_per_minute",
    "key_concurrent_requests": "key_concurrent_requests",
    "key_monthly_budget_exceeded": "key_monthly_budget",
    "key_total_budget_exceeded": "key_total_budget",
    "user_requests_per_minute": "user_requests_per_minute",
    "user_tokens_per_minute": "user_tokens_per_minute",
    "user_concurrent_requests": "user_concurrent_requests",
    "user_monthly_budget_exceeded": "user_monthly_budget",
}


def totals_metrics(totals: Totals) -> Iterator[Metric]:
    """Counters restart when the spool's folder is new; a label set that was idle for a day may disappear."""
    yield from _usage(totals.usage)
    yield counter(
        "key_requests",
        "Requests in the request log, by API key; 0 is for requests without one.",
        ["project", "api_key"],
        [((one.project, one.api_key), one.requests) for one in totals.keys],
    )
    yield counter(
        "key_cost_usd",
        "What the requests of an API key cost, in US dollars.",
        ["project", "api_key"],
        [((one.project, one.api_key), one.cost_units / 10**10) for one in totals.keys if one.cost_units],
    )
    yield counter(
        "errors",
        "Requests that failed, by error code; `provider` is empty when none was called.",
        ["provider", "code"],
        [((provider, code), count) for provider, codes in totals.errors.items() for code, count in codes.items()],
    )
    yield counter("limit_refusals", "Requests refused by a limit or budget.", ["limit"], _refusals(totals))
    yield counter(
        "upstream_attempts",
        "Calls to providers by what became of them, retries and failovers included.",
        ["provider", "result"],
        [((provider, what), count) for provider, found in totals.attempts.items() for what, count in found.items()],
    )
    yield counter(
        "cache_lookups",
        "Requests by what the answer cache had: hit, miss, or skip when it was not asked.",
        ["result"],
        [((status,), count) for status, count in totals.cache.items()],
    )
    yield _histogram(
        "request_duration_seconds",
        "Successful requests from arrival to the end of the answer.",
        "stream",
        DURATION_MS,
        totals.durations.items(),
    )
    yield _histogram(
        "time_to_first_token_seconds",
        "Successful streams from arrival to the first output.",
        "provider",
        DURATION_MS,
        totals.first_outputs.items(),
    )
    yield _histogram(
        "overhead_seconds",
        "Successful requests less the time that providers took; pauses between attempts are in it.",
        "",
        OVERHEAD_MS,
        [("", totals.overhead)],
    )
    yield counter("shipped_records", "Records that the request log has from this host.", (), [((), totals.records)])
    yield counter("shipper_batches", "Inserts into the request log.", (), [((), totals.batches)])


def _usage(sets: list[UsageFigures]) -> Iterator[Metric]:
    yield counter(
        "requests",
        "Requests in the request log, by outcome.",
        [*_SETS, "outcome"],
        [((*_of(one), outcome), count) for one in sets for outcome, count in one.outcomes.items()],
    )
    yield counter(
        "tokens",
        "Tokens that providers counted, cached ones included.",
        [*_SETS, "type"],
        [
            ((*_of(one), kind), tokens)
            for one in sets
            for kind, tokens in (("prompt", one.prompt_tokens), ("completion", one.completion_tokens))
            if tokens
        ],
    )
    yield counter(
        "cached_prompt_tokens",
        "Prompt tokens that providers read from, or wrote to, their own caches.",
        [*_SETS, "type"],
        [
            ((*_of(one), kind), tokens)
            for one in sets
            for kind, tokens in (("read", one.cache_read_tokens), ("write", one.cache_write_tokens))
            if tokens
        ],
    )
    yield counter(
        "cost_usd",
        "What requests cost, in US dollars.",
        _SETS,
        [(_of(one), one.cost_units / 10**10) for one in sets if one.cost_units],
    )
    yield counter(
        "unpriced_requests",
        "Successful requests whose cost is not known: their model has no price.",
        _SETS,
        [(_of(one), one.unpriced) for one in sets if one.unpriced],
    )


def _of(one: UsageFigures) -> tuple[str, str, str]:
    return one.project, one.provider, one.model


def _refusals(totals: Totals) -> list[tuple[tuple[str, ...], float]]:
    counts = dict.fromkeys(_LIMITS.values(), 0)
    for codes in totals.errors.values():
        for code, limit in _LIMITS.items():
            counts[limit] += codes.get(code, 0)
    return [((limit,), count) for limit, count in counts.items()]


def _histogram(
    name: str, text: str, label: str, bounds: tuple[int, ...], found: Iterable[tuple[str, Distribution]]
) -> Metric:
    family = HistogramMetricFamily(PREFIX + name, text, labels=[label] if label else [])
    limits = [*(f"{bound / 1000:g}" for bound in bounds), "+Inf"]
    for value, distribution in found:
        buckets = list(zip(limits, map(float, accumulate(distribution.counts)), strict=True))
        family.add_metric([value] if label else [], buckets, sum_value=distribution.sum_ms / 1000)
    return family
