"""The commands, keys and channels that the user of an ACL has to be allowed (docs/redis.md, "A user of its own").

Each command is given with arguments that are right for it, so that `checks` can ask for it within a MULTI that is
never run; MULTI and EXEC are needed too.
"""

from __future__ import annotations

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
    """Returns the name of a command as an ACL has it, in capital letters: `CLUSTER|SLOTS`."""
    return "|".join(words[:2]) if words[0] in ("CLUSTER", "SCRIPT") else words[0]
