"""Finds everything that keeps this host from serving correctly: a file per store, and one each for settings and the
host.

`manage.py check_deployment` runs all `CHECKS`. `serve` first runs the `REFUSALS`: set-ups under which limits, counts or
answers would be silently wrong. None of those reports an unreachable store, since `serve` starts without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from config.deployment import clickhouse, configuration, host, postgresql, postgresql_servers, redis
from config.deployment.problem import Problem

Check = Callable[[], Iterator[Problem]]

CHECKS: tuple[Check, ...] = (configuration.check, postgresql.check, redis.check, clickhouse.check, host.check)
REFUSALS: tuple[Check, ...] = (postgresql_servers.refuse, redis.refuse)


def find_problems(checks: tuple[Check, ...] = CHECKS) -> list[Problem]:
    return [problem for check in checks for problem in check()]
