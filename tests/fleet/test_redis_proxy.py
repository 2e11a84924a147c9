"""A proxy that closes connections which have been idle for a while, as HAProxy usually does after a minute."""

from __future__ import annotations

from pathlib import Path

import pytest
from pytest_django import Settings

from tests.fleet.redis_uses import uses
from tests.fleet.servers import HOST, Redis, haproxy, redis_server
from tests.waiting import eventually

_IDLE = """\
global
    stats socket {{socket}} mode 600 level admin
defaults
    mode tcp
    timeout connect 5s
    timeout client {idle}ms
    timeout server {idle}ms
frontend redis
    bind 127.0.0.1:{{port}}
    default_backend server
backend server
    server redis {address}
"""
IDLE_SECONDS = 2.0


# The connections that wait, of limits, health and announcements.
WAITING = 3


@pytest.mark.parametrize(("ping_seconds", "is_kept"), [(0.2, True), (60.0, False)])
async def test_idle_proxy__pinged_often_enough__closes_no_connection_that_is_needed(
    folder: Path, settings: Settings, caplog: pytest.LogCaptureFixture, ping_seconds: float, is_kept: bool
) -> None:
    """Without the pings connections do come to their end, so that the proxy is what the test takes it for."""
    settings.REDIS_PING_SECONDS = ping_seconds
    with redis_server(folder / "redis") as server:
        configuration = _IDLE.format(idle=int(IDLE_SECONDS * 1000), address=f"{HOST}:{server.port}")
        with haproxy(folder / "proxy", configuration) as proxy:
            async with uses(f"redis://{HOST}:{proxy.port}/0") as one:
                read, pings = one.changes.everything, _pings(server)
                if is_kept:
                    # For twice as long as the proxy waits.
                    await eventually(lambda: _pings(server) - pings > WAITING * 2 * IDLE_SECONDS / ping_seconds)
                else:
                    await eventually(lambda: one.changes.everything > read)

    lost = [line.partition(" ")[0] for line in caplog.messages if "lost" in line or "away" in line]
    assert bool(lost) is not is_kept, lost


def _pings(server: Redis) -> int:
    with server.client() as client:
        found: dict[str, dict[str, int]] = client.info("commandstats")
    return found.get("cmdstat_ping", {"calls": 0})["calls"]
