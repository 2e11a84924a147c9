"""Everything that keeps this host from serving correctly: a file a store, and one each for settings and the host.

`manage.py check_deployment` runs all checks of `CHECKS`. Before `serve` begins it asks those of `REFUSALS`: each finds
a set-up under which limits, counts or answers would be wrong without a word. None of them complains of a store that is
away, since `serve` starts without it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from config.deployment import clickhouse, configuration, host, postgresql, postgresql_servers, redis
from config.deployment.problem import Problem

Check = Callable[[], Iterator[Problem]]

CHECKS: tuple[Check, ...] = (configuration.check, postgresql.check, redis.check, clickhouse.check, host.check)
REFUSALS: tuple[Check, ...] = (postgresql_servers.refuse, redis.refuse)


def find_problems(checks: tuple[Check, ...] = CHECKS) -> list[Problem]:
    """Returns all problems in the order of the checks. A store that is unreachable ends only its own checks."""
    return [problem for check in checks for problem in check()]
