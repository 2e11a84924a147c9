"""A Redis of the tests' own, which they may stop and kill, and the scripts as plain calls."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import redis

from gateway.limits.scripts import Script
from tests.services import Service, start_redis


class OwnRedis:
    """A Redis server that is empty after a restart and keeps its address."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="lim-", dir="/tmp"))
        self.service: Service
        self.url = ""
        self.start()
        self.client = redis.Redis.from_url(self.url)

    def start(self) -> None:
        folder = self._folder / "redis"
        shutil.rmtree(folder, ignore_errors=True)
        self.service, self.url = start_redis(folder)

    def run(self, script: Script, keys: list[str], *arguments: Any) -> Any:
        return self.client.eval(script.text.decode(), len(keys), *keys, *arguments)

    def close(self) -> None:
        self.service.stop()
        self.client.close()
        shutil.rmtree(self._folder)


@pytest.fixture(scope="module")
def module_redis() -> Iterator[OwnRedis]:
    own = OwnRedis()
    yield own
    own.close()


@pytest.fixture
def own_redis(module_redis: OwnRedis) -> OwnRedis:
    """An empty Redis for one test."""
    module_redis.client.flushall()
    return module_redis


@pytest.fixture
def fragile_redis() -> Iterator[OwnRedis]:
    """A Redis that the test may stop and kill."""
    own = OwnRedis()
    yield own
    own.close()
