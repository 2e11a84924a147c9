from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from analytics.clickhouse.topology.mode import mode, on_trial
from analytics.errors import AnalyticsLimitError, AnalyticsQueryError, AnalyticsUnavailableError
from analytics.proof.promises import PROMISES, BrokenPromiseError, Promise
from analytics.proof.servers import NoServerError, Server, find_servers, scratch_database

_STORE_ERRORS = (AnalyticsUnavailableError, AnalyticsLimitError, AnalyticsQueryError)


@dataclass(frozen=True)
class Result:
    name: str
    text: str
    reason: str


def prove(named: Sequence[str] = ()) -> Iterator[Result]:
    """Yields each result as soon as it is known; drops the scratch database at the end.

    Raises NoServerError, and the errors of the store before the first result.
    """
    servers = find_servers(named)
    if len(servers) < 2 and not mode().is_single:
        raise NoServerError(
            f"Found {len(servers)} of the store's servers, and a proof needs two: name them with --server HOST:PORT."
        )
    with on_trial(), scratch_database(servers) as scratch:
        for promise in PROMISES:
            yield Result(promise.name, promise.text, reason_of(promise, scratch))


def reason_of(promise: Promise, servers: Sequence[Server]) -> str:
    try:
        promise.keep(servers)
    except BrokenPromiseError as error:
        return str(error)
    except AnalyticsQueryError as error:
        return f"{error.message} {error.reason.splitlines()[0]}"
    except _STORE_ERRORS as error:
        return error.message
    return ""
