"""Computes the figures of the metrics endpoints once more, in plain Python from the records."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from analytics.request_log.record import BATCH, Outcome, RequestRecord

Records = Sequence[RequestRecord]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


def microseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // _MICROSECOND


def iso(microseconds_: int) -> str:
    return (_EPOCH + timedelta(microseconds=microseconds_)).isoformat().replace("+00:00", "Z")


def between(records: Records, start: datetime, end: datetime) -> Records:
    return [record for record in records if microseconds(start) <= record.ts <= microseconds(end)]


def cost(records: Iterable[RequestRecord]) -> Decimal:
    return sum((Decimal(record.cost_usd or 0) for record in records), Decimal(0))


def is_error(record: RequestRecord) -> bool:
    return record.outcome in {Outcome.ERROR, Outcome.INTERRUPTED}


def latencies(records: Iterable[RequestRecord]) -> list[int]:
    """Returns the latencies; a line of a batch has none."""
    return [record.latency_ms for record in records if record.source != BATCH]


def grouped(records: Records, key: Callable[[RequestRecord], Any]) -> dict[Any, Records]:
    groups: defaultdict[Any, list[RequestRecord]] = defaultdict(list)
    for record in records:
        groups[key(record)].append(record)
    return dict(groups)


def sums(records: Records) -> dict[str, Any]:
    errors, count = sum(is_error(record) for record in records), len(records)
    prompt, completion = (sum(getattr(r, name) for r in records) for name in ("prompt_tokens", "completion_tokens"))
    return {
        "request_count": count,
        "error_count": errors,
        "error_rate": errors / count if count else 0.0,
        "cancelled_count": sum(record.outcome == Outcome.CANCELLED for record in records),
        "unpriced_request_count": sum(not record.cost_known for record in records),
        "prompt_tokens": prompt,
        "completion_tokens": completion,
        "cache_read_tokens": sum(record.cache_read_tokens for record in records),
        "cache_write_tokens": sum(record.cache_write_tokens for record in records),
        "total_tokens": prompt + completion,
        "total_cost_usd": float(cost(records)),
        "average_latency_ms": sum(latencies(records)) / (len(latencies(records)) or 1),
    }


def users(records: Records) -> tuple[list[dict[str, Any]], dict[str, Any] | None]:
    """Returns the users in the order of the endpoint, and the figures of requests without a user."""
    groups = grouped(records, lambda record: record.user_id)
    unnamed = groups.pop("", None)
    order = sorted(groups, key=lambda name: (-cost(groups[name]), -len(groups[name]), name.encode()))
    return [_user(name, groups[name]) for name in order], _user("", unnamed) if unnamed else None


def _user(name: str, records: Records) -> dict[str, Any]:
    return {
        "user_id": name,
        **sums(records),
        "session_count": len({record.session_id for record in records} - {""}) if name else 0,
        "models_used": sorted({record.model for record in records} - {""}),
        "first_seen": iso(min(record.ts for record in records)),
        "last_seen": iso(max(record.ts for record in records)),
    }


def models(records: Records) -> list[dict[str, Any]]:
    """Returns the figures of the endpoint without its percentiles."""
    groups = grouped(records, lambda record: (record.model, record.provider))
    order = sorted(groups, key=lambda key: (-cost(groups[key]), -len(groups[key]), key))
    return [{"model": key[0], "provider": key[1], **sums(groups[key])} for key in order]


def operations(records: Records) -> list[dict[str, Any]]:
    """Returns the figures of the endpoint without its percentiles."""
    groups = grouped(records, lambda record: record.operation)
    order = sorted(groups, key=lambda name: (-cost(groups[name]), -len(groups[name]), name))
    return [{"operation": name, **sums(groups[name])} for name in order]


def prompts(records: Records, *, by_version: bool) -> list[dict[str, Any]]:
    served = [record for record in records if record.prompt_version]
    groups = grouped(served, lambda record: (record.prompt_config_id, record.prompt_version if by_version else None))
    order = sorted(groups, key=lambda key: (-len(groups[key]), -cost(groups[key]), key[0], key[1] or 0))
    return [{"prompt_config_id": key[0], "prompt_version": key[1], **sums(groups[key])} for key in order]


def model_costs(records: Records) -> list[dict[str, Any]]:
    groups = grouped(records, lambda record: record.model)
    order = sorted(groups, key=lambda name: (-cost(groups[name]), -len(groups[name]), name))
    return [
        {
            "model": name,
            "providers": sorted({record.provider for record in groups[name]} - {""}),
            **_costs(groups[name]),
            "percentage": float(100 * cost(groups[name]) / cost(records)) if cost(records) else 0.0,
        }
        for name in order
    ]


def daily_costs(records: Records, start: datetime, end: datetime) -> list[dict[str, Any]]:
    days = grouped(records, lambda record: record.ts // 86_400_000_000)
    first, last = ((moment - _EPOCH) // timedelta(days=1) for moment in (start, end))
    return [
        {
            "date": (_EPOCH + timedelta(days=day)).date().isoformat(),
            **_costs(days.get(day, [])),
            "cache_read_tokens": sum(record.cache_read_tokens for record in days.get(day, [])),
            "cache_write_tokens": sum(record.cache_write_tokens for record in days.get(day, [])),
        }
        for day in range(last, first - 1, -1)
    ]


def usage(records: Records, start: datetime, end: datetime, length: timedelta) -> list[dict[str, Any]]:
    """Returns the figures of the endpoint without its percentiles."""
    unit = length // _MICROSECOND
    buckets = grouped(records, lambda record: record.ts // unit)
    first, last = (microseconds(moment) // unit for moment in (start, end))
    return [{"start": iso(bucket * unit), **sums(buckets.get(bucket, []))} for bucket in range(last, first - 1, -1)]


def errors(records: Records) -> list[dict[str, Any]]:
    failed = [record for record in records if is_error(record)]
    groups = grouped(failed, lambda record: (record.provider, record.error_type, record.error_code))
    return [
        {
            "provider": key[0],
            "type": key[1],
            "code": key[2],
            "status_codes": sorted({record.status_code for record in groups[key]}),
            "models": sorted({record.model for record in groups[key]} - {""}),
            "error_count": len(groups[key]),
            "percentage": 100 * len(groups[key]) / len(failed),
            "last_seen": iso(max(record.ts for record in groups[key])),
        }
        for key in sorted(groups, key=lambda key: (-len(groups[key]), key))
    ]


def overview(records: Records) -> dict[str, Any]:
    groups = grouped(records, lambda record: record.model)
    top = sorted(groups.keys() - {""}, key=lambda name: (-len(groups[name]), name))[:5]
    whole = sums(records)
    return {
        "total_requests": whole["request_count"],
        "total_sessions": len({record.session_id for record in records} - {""}),
        "total_users": len({record.user_id for record in records} - {""}),
        "total_tokens": whole["total_tokens"],
        "total_cost_usd": whole["total_cost_usd"],
        "error_count": whole["error_count"],
        "cancelled_count": whole["cancelled_count"],
        "unpriced_request_count": whole["unpriced_request_count"],
        "error_rate": whole["error_rate"],
        "average_latency_ms": whole["average_latency_ms"],
        "top_models": [
            {
                "model": name,
                "request_count": len(groups[name]),
                "total_tokens": sums(groups[name])["total_tokens"],
                "total_cost_usd": float(cost(groups[name])),
            }
            for name in top
        ],
    }


def rank_error(values: Sequence[float], level: float, found: float) -> float:
    """Returns how far `found` is from the `level` quantile, as a share of all values; ties are any of their ranks."""
    below = sum(value < found for value in values) / len(values)
    up_to = sum(value <= found for value in values) / len(values)
    return max(below - level, level - up_to, 0.0)


def _costs(records: Records) -> dict[str, Any]:
    whole = sums(records)
    return {
        "request_count": whole["request_count"],
        "input_tokens": whole["prompt_tokens"],
        "output_tokens": whole["completion_tokens"],
        "total_tokens": whole["total_tokens"],
        "total_cost_usd": whole["total_cost_usd"],
        "unpriced_request_count": whole["unpriced_request_count"],
    }
