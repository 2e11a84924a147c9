from __future__ import annotations

import ssl

import pytest

from core.redis.address import Mode, parse
from core.redis.broker import broker, check_broker
from tests.tables.cases import tabled

SENTINELS = "redis+sentinel://ada:p%40ss@one,two:5,[::1]:6/gateway/3?sentinel_password=own"


def test_address__of_one_server__is_redis_pys() -> None:
    address = parse("redis://ada:p%40ss@host:6380/2?socket_keepalive=yes")

    assert (address.mode, address.hosts, address.tls) == (Mode.SERVER, (), False)
    assert address.options == {"username": "ada", "password": "p@ss", "db": 2, "socket_keepalive": True, "ssl": False}


def test_address__of_sentinels__has_each_with_its_port_and_users_of_both() -> None:
    address = parse(SENTINELS)

    assert (address.mode, address.primary) == (Mode.SENTINEL, "gateway")
    assert address.hosts == (("one", 26379), ("two", 5), ("::1", 6))
    assert address.options == {"username": "ada", "password": "p@ss", "db": 3, "ssl": False}
    assert address.sentinel_options == {"password": "own", "ssl": False}


def test_address__of_a_cluster_with_tls__has_the_options_of_tls() -> None:
    address = parse("rediss+cluster://one,two:7001/0?ssl_ca_certs=/ca.pem")

    assert (address.mode, address.hosts) == (Mode.CLUSTER, (("one", 6379), ("two", 7001)))
    assert address.options == {"ssl": True, "ssl_ca_certs": "/ca.pem"}


@tabled
def test_address__wrong__says_what_is_expected_and_quotes_nothing(url: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected.replace("+", r"\+")) as raised:
        parse(url)

    assert "private" not in str(raised.value)


def test_broker__socket__has_celerys_scheme() -> None:
    assert broker("unix:///run/redis.sock?db=1").url == "redis+socket:///run/redis.sock?virtual_host=1"


def test_broker__sentinels__are_named_to_celery_one_by_one() -> None:
    found = broker(SENTINELS)

    assert found.url == ";".join(f"sentinel://ada:p%40ss@{host}/3" for host in ("one:26379", "two:5", "[::1]:6"))
    assert found.transport_options["master_name"] == "gateway"
    assert found.transport_options["sentinel_kwargs"]["password"] == "own"


def test_broker__tls_without_options__trusts_no_other_certificate() -> None:
    """Celery's transport by itself would take any certificate."""
    found = broker("rediss://host:6380/1")

    assert (found.url, found.use_ssl) == ("rediss://host:6380/1", {"ssl_cert_reqs": ssl.CERT_REQUIRED})


def test_broker__options_of_redis_py__are_none_of_the_url() -> None:
    found = broker("rediss://host?db=2&ssl_ca_certs=/ca.pem&ssl_cert_reqs=none")

    assert found.url == "rediss://host/2"
    assert found.use_ssl == {"ssl_ca_certs": "/ca.pem", "ssl_cert_reqs": ssl.CERT_NONE}


def test_broker__cluster__is_refused() -> None:
    with pytest.raises(ValueError, match="no cluster"):
        check_broker("redis+cluster://host")
