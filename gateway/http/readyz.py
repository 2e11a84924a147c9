from __future__ import annotations

import asyncio
import time
from collections.abc import Collection, Mapping
from typing import Any

import msgspec

from core.keys.services import hash_key
from core.rights.scopes import MANAGE, METRICS_READ
from gateway.http.consumer import SharedConsumer
from gateway.protocol.headers import read_headers
from gateway.protocol.identifiers import new_request_id
from gateway.protocol.reply import Receive, Reply, Scope, Send
from gateway.runtime.readiness import ANALYTICS_MIGRATIONS
from gateway.runtime.runtime import Runtime
from gateway.worker.current import current_runtime
from gateway.worker.state import begin_observation

_MAX_KEY_BYTES = 512
_background: set[asyncio.Task[Any]] = set()


class Ready(SharedConsumer):
    """GET /readyz: answers 200, or 503 with the failing checks.

    A key with scope `manage` or `metrics:read` also sees the host's state. The answer waits for no store: an unknown
    key is looked up in the background, and recognized from the next call on.
    """

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        runtime = current_runtime()
        # A server without the lifespan, such as daphne, begins with the first question.
        begin_observation(runtime)
        checks = runtime.readiness.checks()
        failing = [name for name, holds in checks.items() if not holds]
        answer: dict[str, Any] = {"status": "not_ready" if failing else "ready", "failing": failing}
        pending = runtime.readiness.pending()
        if pending:
            answer["pending"] = pending
        if _may_see(runtime, read_headers(scope["headers"]).authorization):
            answer |= {
                "checks": _shown(checks, pending),
                "in_flight": len(runtime.inflight),
                "host": runtime.readiness.host,
            }
        reply = Reply(send, new_request_id())
        await reply.whole(503 if failing else 200, msgspec.json.encode(answer), [(b"cache-control", b"no-store")])


def _shown(checks: Mapping[str, bool], pending: Collection[str]) -> dict[str, str]:
    shown = {name: "passed" if holds else "failed" for name, holds in checks.items()}
    if ANALYTICS_MIGRATIONS in pending and checks["migrations"]:
        shown["migrations"] = "pending"
    return shown


def _may_see(runtime: Runtime, credential: bytes) -> bool:
    if credential[:7].lower() != b"bearer ":
        return False
    key_hash = hash_key(credential[7 : 7 + _MAX_KEY_BYTES].strip())
    found = runtime.snapshots.find(key_hash)
    if found is None:
        looking = runtime.loop.create_task(_look_up(runtime, key_hash))
        _background.add(looking)
        looking.add_done_callback(_background.discard)
        return False
    key = found[1]
    expired = key.expires_at is not None and key.expires_at.timestamp() <= time.time()
    return not expired and not key.scopes.isdisjoint((MANAGE, METRICS_READ))


async def _look_up(runtime: Runtime, key_hash: str) -> None:
    # Exceptions are dropped: the answer has been given, and the snapshot store logs itself that the database is away.
    await asyncio.gather(runtime.snapshots.resolve(key_hash), return_exceptions=True)
