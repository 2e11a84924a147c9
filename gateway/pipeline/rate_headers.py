"""Rate limit headers by OpenAI's names: https://platform.openai.com/docs/guides/rate-limits#rate-limits-in-headers"""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from core.caller_limits import CallerLimits
from gateway.limits.claims import Admission
from gateway.limits.keys import seconds_left
from gateway.project_settings.limits import ProjectLimits
from gateway.protocol import headers
from gateway.protocol.reply import HeaderList

_Names = tuple[bytes, ...]


def rate_headers(arrived_us: int, admission: Admission) -> HeaderList:
    seconds = seconds_left(arrived_us)
    found: HeaderList = []
    if admission.requests_limit is not None and admission.requests is not None:
        found += _rate(headers.RATE_LIMIT_REQUESTS, admission.requests_limit, admission.requests, seconds)
    if admission.tokens_limit is not None and admission.tokens is not None:
        found += _rate(headers.RATE_LIMIT_TOKENS, admission.tokens_limit, admission.tokens, seconds)
    return found


def rate_lines(arrived_us: int, admission: Admission) -> bytes:
    lines, seconds = b"", seconds_left(arrived_us)
    limit, used = admission.requests_limit, admission.requests
    if limit is not None and used is not None:
        lines = _lines(headers.RATE_LIMIT_REQUESTS, limit, seconds) % (limit - used if limit > used else 0)
    limit, used = admission.tokens_limit, admission.tokens
    if limit is not None and used is not None:
        lines += _lines(headers.RATE_LIMIT_TOKENS, limit, seconds) % (limit - used if limit > used else 0)
    return lines


@lru_cache(maxsize=4096)
def _lines(names: _Names, limit: int, seconds: int) -> bytes:
    limit_name, remaining_name, reset_name = names
    return b"%b: %d\r\n%b: %%d\r\n%b: %ds\r\n" % (limit_name, limit, remaining_name, reset_name, seconds)


def uncounted_headers(limits: ProjectLimits, of_callers: Collection[CallerLimits], arrived_us: int) -> HeaderList:
    seconds = seconds_left(arrived_us)
    found: HeaderList = []
    for names, allowed_by in (
        (headers.RATE_LIMIT_REQUESTS, [limits.requests_per_minute, *(each.requests_per_minute for each in of_callers)]),
        (headers.RATE_LIMIT_TOKENS, [limits.tokens_per_minute, *(each.tokens_per_minute for each in of_callers)]),
    ):
        limit = min((allowed for allowed in allowed_by if allowed is not None), default=None)
        if limit is not None:
            allowed_header, _, reset = _shared_headers(names, limit, seconds)
            found += [allowed_header, reset]
    return found


def _rate(names: _Names, limit: int, used: int, seconds: int) -> HeaderList:
    allowed, remaining_name, reset = _shared_headers(names, limit, seconds)
    return [allowed, (remaining_name, b"%d" % (limit - used if limit > used else 0)), reset]


@lru_cache(maxsize=4096)
def _shared_headers(names: _Names, limit: int, seconds: int) -> tuple[tuple[bytes, bytes], bytes, tuple[bytes, bytes]]:
    limit_name, remaining_name, reset_name = names
    return (limit_name, b"%d" % limit), remaining_name, (reset_name, b"%ds" % seconds)
