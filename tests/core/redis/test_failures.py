"""The certificates are real in `tests/fleet/test_redis_tls.py`."""

from __future__ import annotations

import ssl

import pytest
import redis
from redis.exceptions import NoPermissionError, RedisClusterException

from core.redis.failures import is_permanent, reason


def caused(error: BaseException, by: BaseException) -> BaseException:
    error.__cause__ = by
    return error


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (redis.AuthenticationError("WRONGPASS private"), "the user name or the password is wrong or missing"),
        (NoPermissionError("private"), "the user may not do what is needed"),
        (caused(redis.ConnectionError("x"), FileNotFoundError(2, "No such file")), "ssl_ca_certs, cannot be read"),
        (caused(redis.ConnectionError("x"), ssl.SSLError(1, "[SSL] no")), "TLS failed"),
    ],
)
def test_reason__that_an_operator_has_to_mend__is_said_in_words(error: BaseException, words: str) -> None:
    assert words in reason(error)
    assert "private" not in reason(error)
    assert is_permanent(error)


@pytest.mark.parametrize(
    ("error", "name"),
    [
        (redis.ConnectionError("no"), "ConnectionError"),
        (TimeoutError(), "TimeoutError"),
        (caused(RedisClusterException("x"), redis.TimeoutError("no")), "TimeoutError"),
        (redis.ResponseError("MISCONF no disk"), "ResponseError"),
    ],
)
def test_reason__that_may_pass__is_the_name_of_the_error(error: BaseException, name: str) -> None:
    assert reason(error) == name
    assert not is_permanent(error)
