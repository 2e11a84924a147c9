"""What makes a Redis unfit, checked before anything is counted there: the wrong kind of server, a replica, a user
without the needed permissions, keys that are evicted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import redis
import redis.sentinel
from redis.cluster import ClusterNode

from core.redis.address import Address, Mode, parse
from core.redis.clients import is_cluster, new_client
from core.redis.failures import REDIS_ERRORS, is_permanent, reason

_SECONDS = 3.0
_INVALID = ("GET",)
_KINDS = {
    "standalone": "one server: write its address with redis: or rediss:",
    "cluster": "a node of a Redis Cluster: write redis+cluster:// with some of the nodes",
    "sentinel": "a Sentinel: write redis+sentinel:// with the Sentinels and /NAME of the primary",
}
_KINDS_FOR_CELERY = {**_KINDS, "cluster": "a node of a Redis Cluster, which Celery cannot use: name another Redis"}
_MODES = {Mode.SERVER: "standalone", Mode.SENTINEL: "standalone", Mode.CLUSTER: "cluster"}


# The commands, keys and channels that the user of an ACL has to be allowed (docs/redis.md, "A user of its own").
#
# Each command is given with arguments that are right for it, so that `checks` can ask for it within a MULTI that is
# never run; MULTI and EXEC are needed too.

_KEY, _CHANNEL = "svc:limits:{check}:total", "svc:configuration"
_QUEUE, _BINDINGS = "celery", "_kombu.binding.celery"

COMMANDS: tuple[tuple[str, ...], ...] = (
    ("INFO",),
    ("PING",),
    ("TIME",),
    ("EVAL", "return 1", "1", _KEY),
    ("EVALSHA", "0" * 40, "1", _KEY),
    ("GET", "{health:0}:check"),
    ("SET", _KEY, ""),
    ("MGET", _KEY),
    ("EXISTS", _KEY),
    ("EXPIRE", _KEY, "1"),
    ("DEL", "{rollout:0}:check"),
    ("UNLINK", _KEY),
    ("SCAN", "0"),
    ("HGET", _KEY, "field"),
    ("HSET", _KEY, "field", ""),
    ("HDEL", _KEY, "field"),
    ("HMGET", _KEY, "field"),
    ("HGETALL", _KEY),
    ("HINCRBY", _KEY, "field", "1"),
    ("ZADD", _KEY, "1", "member"),
    ("ZREM", _KEY, "member"),
    ("ZCARD", _KEY),
    ("ZMSCORE", _KEY, "member"),
    ("ZRANGE", _KEY, "0", "-1"),
    ("ZRANGEBYSCORE", _KEY, "-inf", "+inf"),
    ("ZREVRANGEBYSCORE", _KEY, "+inf", "-inf"),
    ("ZREMRANGEBYSCORE", _KEY, "-inf", "+inf"),
    ("SADD", _KEY, "member"),
    ("SREM", _KEY, "member"),
    ("SMEMBERS", _KEY),
    ("LPUSH", _KEY, ""),
    ("LRANGE", _KEY, "0", "-1"),
    ("LTRIM", _KEY, "0", "-1"),
    ("PUBLISH", _CHANNEL, ""),
    ("SUBSCRIBE", _CHANNEL),
    ("UNSUBSCRIBE", _CHANNEL),
)

# More of a cluster.
OF_CLUSTERS: tuple[tuple[str, ...], ...] = (("CLUSTER", "SLOTS"), ("COMMAND",), ("ASKING",))

# What Celery's broker needs.
OF_BROKERS: tuple[tuple[str, ...], ...] = (
    ("INFO",),
    ("PING",),
    ("TIME",),
    ("LLEN", _QUEUE),
    ("LPUSH", _QUEUE, ""),
    ("RPUSH", _QUEUE, ""),
    ("BRPOP", _QUEUE, "1"),
    ("SADD", _BINDINGS, ""),
    ("SMEMBERS", _BINDINGS),
    ("SREM", _BINDINGS, ""),
    ("HSET", "unacked", "tag", ""),
    ("HGET", "unacked", "tag"),
    ("HEXISTS", "unacked", "tag"),
    ("HDEL", "unacked", "tag"),
    ("ZADD", "unacked_index", "1", "tag"),
    ("ZREM", "unacked_index", "tag"),
    ("ZRANGE", "_kombu.binding_deadlines", "0", "-1"),
    ("ZRANGEBYSCORE", "_kombu.binding_deadlines", "-inf", "+inf"),
    ("ZREVRANGEBYSCORE", "unacked_index", "+inf", "-inf"),
    ("GET", "unacked_mutex"),
    ("SET", "unacked_mutex", "", "NX"),
    ("DEL", "unacked_mutex"),
    ("WATCH", "unacked_mutex"),
    ("UNWATCH",),
    ("SCRIPT", "EXISTS", "0" * 40),
    ("SCRIPT", "LOAD", "return 1"),
    ("EVALSHA", "0" * 40, "1", _BINDINGS),
    ("PUBLISH", "/0.celeryev/worker.online", ""),
    ("PSUBSCRIBE", "/0.celery.pidbox"),
    ("PUNSUBSCRIBE", "/0.celery.pidbox"),
)


def name_of(words: tuple[str, ...]) -> str:
    return "|".join(words[:2]) if words[0] in ("CLUSTER", "SCRIPT") else words[0]


@dataclass(frozen=True, slots=True)
class Fault:
    """With `is_lasting`, limits or counts would be wrong, and waiting does not help."""

    message: str
    is_lasting: bool = True


@dataclass(frozen=True, slots=True)
class Found:
    """`clock` is the server's Unix time in seconds, None without an answer."""

    faults: Sequence[Fault]
    clock: float | None = None


def look_at(url: str, *, is_broker: bool, is_limiter: bool = True) -> Found:
    """Looks at all primaries. `is_broker` and `is_limiter` say what they are used for: Celery's tasks, and everything
    else."""
    address = parse(url)
    if address.mode is Mode.SENTINEL and (fault := _fault_of_sentinels(address)):
        return Found([fault])
    faults: list[Fault] = []
    clock = None
    try:
        with _primaries(address) as primaries:
            for primary in primaries:
                found = list(_faults_of(primary, address, is_broker=is_broker, is_limiter=is_limiter))
                faults += found
                if not found:
                    seconds, microseconds = primary.time()
                    clock = seconds + microseconds / 1e6
    except REDIS_ERRORS as error:
        faults.append(_away(error, address))
    # The nodes of a cluster usually have the same ones.
    return Found(list(dict.fromkeys(faults)), clock)


@contextmanager
def _primaries(address: Address) -> Iterator[list[redis.Redis]]:
    client: Any = new_client(address.url, seconds=_SECONDS)
    try:
        if is_cluster(client):
            nodes: list[ClusterNode] = client.get_primaries()
            yield [client.get_redis_connection(node) for node in nodes]
        else:
            yield [client]
    finally:
        client.close()


def _faults_of(primary: redis.Redis, address: Address, *, is_broker: bool, is_limiter: bool) -> Iterator[Fault]:
    try:
        about: dict[str, Any] = dict(primary.info())
    except redis.exceptions.NoPermissionError:
        about = {}
    kind = str(about.get("redis_mode", _MODES[address.mode]))
    if kind != _MODES[address.mode]:
        yield Fault(f"The address leads to {(_KINDS if is_limiter else _KINDS_FOR_CELERY).get(kind, kind)}.")
        return
    if about.get("role", "master") != "master":
        yield Fault("The address leads to a replica, which takes no writes: name the primary, or redis+sentinel://.")
        return
    wanted = (*(COMMANDS if is_limiter else ()), *(OF_BROKERS if is_broker else ()))
    if refused := _refused(primary, (*wanted, *(OF_CLUSTERS if address.mode is Mode.CLUSTER else ()))):
        yield Fault(f"Its user may not run {', '.join(refused)}: see docs/redis.md for what it needs.")
    if about.get("maxmemory") and about.get("maxmemory_policy") != "noeviction":
        policy = about["maxmemory_policy"]
        yield Fault(f"Redis drops keys when it is full ({policy}), budgets among them: use noeviction.", False)


def _refused(primary: redis.Redis, commands: Sequence[tuple[str, ...]]) -> list[str]:
    """Returns the commands that the user may not run on these keys and channels.

    Runs none: Redis checks the ACL first when it queues a command in MULTI, and runs no MULTI that had an invalid
    command.
    """
    connection: Any = primary.connection_pool.get_connection()
    refused = []
    try:
        for words in (("MULTI",), *commands, _INVALID, ("EXEC",)):
            connection.send_command(*words, check_health=False)
            try:
                connection.read_response()
            except redis.exceptions.NoPermissionError:
                refused.append(name_of(words))
                if words[0] == "MULTI":
                    break  # The others would be run.
            except redis.ResponseError:
                pass  # It may be run, though not in a MULTI, or not on this node.
    finally:
        # It may be left in a MULTI or a subscription.
        connection.disconnect()
        primary.connection_pool.release(connection)
    return list(dict.fromkeys(refused))


def _away(error: BaseException, address: Address) -> Fault:
    if address.mode is Mode.CLUSTER and "Cluster mode is not enabled" in str(error):
        return Fault(f"The address leads to {_KINDS['standalone']}.")
    return Fault(f"Redis does not answer ({reason(error)}).", is_lasting=is_permanent(error))


def _fault_of_sentinels(address: Address) -> Fault | None:
    options = {**address.sentinel_options, "socket_timeout": _SECONDS, "socket_connect_timeout": _SECONDS}
    failure: BaseException | None = None
    answered = False
    for host, port in address.hosts:
        with redis.Redis(host=host, port=port, **options) as sentinel:
            try:
                if sentinel.execute_command("SENTINEL", "GET-MASTER-ADDR-BY-NAME", address.primary):
                    return None
                answered = True
            except redis.ResponseError as error:
                if "unknown command" in str(error):
                    return Fault("The address leads to a server that is no Sentinel: those listen on another port.")
                failure = error
            except REDIS_ERRORS as error:
                failure = error
    if answered:
        return Fault(f"The Sentinels know no primary of the name {address.primary}.")
    problem = reason(failure) if failure is not None else "no address"
    return Fault(f"No Sentinel answers ({problem}).", is_lasting=failure is not None and is_permanent(failure))
