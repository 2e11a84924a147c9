"""What hosts admit of a limit together while none of them reaches Redis."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import requests
from prometheus_client.parser import text_string_to_metric_families

from tests.services import START_SECONDS, Service
from tests.waiting import wait_until

_BODY = {"model": "openai_compatible/echo", "messages": [{"role": "user", "content": "Hello"}]}
# A minute that ends in the middle of a round costs one key.
_KEYS = 6
_HOSTS = "prompt_gateway_hosts"


@dataclass
class KeyLimit:
    """Keys of `limit` requests a minute, by as many hosts as `addresses` has. `asked` counts the requests sent."""

    addresses: Sequence[str]
    headers: dict[str, str]
    limit: int
    asked: int = 0
    _keys: list[str] = field(default_factory=list)

    def prepare(self, metrics: Sequence[str]) -> None:
        """Returns once every host knows of all, and of the keys."""
        wait_until(lambda: all(_serving(url) == len(self.addresses) for url in metrics), what="hosts to be known")
        for number in range(_KEYS):
            body = {"name": f"k{number}", "scopes": ["gateway"], "rate_limit_rpm": self.limit}
            made = requests.post(f"{self.addresses[0]}/api/llm/keys", headers=self.headers, json=body, timeout=30)
            self._keys.append(made.json()["key"])
        for address in self.addresses:
            wait_until(lambda at=address: self._ask(at, self._keys[0]) == "200", what="a key")  # type: ignore[misc]

    def lose(self, redis: Service) -> None:
        redis.stop()
        wait_until(lambda: self._admitted() == self.limit, seconds=2 * START_SECONDS, what="shares of the limit")

    def refuse(self) -> str:
        """Has the project refuse meanwhile, and returns the code of the refusal."""
        url, settings = f"{self.addresses[0]}/api/llm/settings", {"limits_without_redis": "refuse"}
        requests.put(url, headers=self.headers, json=settings, timeout=30).raise_for_status()
        key = self._keys.pop()

        def refused() -> str | None:
            code = self._ask(self.addresses[0], key)
            return code if code.startswith("503") else None

        return wait_until(refused, what="the setting")

    def _admitted(self) -> int:
        key, minute = self._keys.pop(), time.time() // 60
        share = self.limit // len(self.addresses)
        answers = Counter(self._ask(address, key) for address in self.addresses for _ in range(share + 3))
        assert answers.keys() <= {"200", "429 key_requests_per_minute"}, answers
        return answers["200"] if time.time() // 60 == minute else 0

    def _ask(self, address: str, key: str) -> str:
        self.asked += 1
        url, headers = f"{address}/api/gateway/v1/chat/completions", {"Authorization": f"Bearer {key}"}
        answer = requests.post(url, json=_BODY, headers=headers, timeout=START_SECONDS)
        return "200" if answer.ok else f"{answer.status_code} {answer.json()['error']['code']}"


def _serving(metrics_url: str) -> float:
    found = text_string_to_metric_families(requests.get(metrics_url, timeout=30).text)
    states = {sample.labels["state"]: sample.value for one in found for sample in one.samples if one.name == _HOSTS}
    return states.get("serving", 0)
