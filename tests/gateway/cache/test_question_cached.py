"""Records of a rollout's requests say whether the cache had an answer to the question from one of the arms."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import msgspec
import pytest
import redis

from analytics.request_log.record import RequestRecord
from gateway.cache.key import prefix
from gateway.cache.store import CachedAnswer
from rollouts.allocation import AllocationType, variant_of
from tests.fakes import scripted as play
from tests.gateway.conftest import Routed, Scripted
from tests.gateway.managed import Prompt, Rollout, make_prompt
from tests.gateway.service import Gateway
from tests.gateway.surfaces.ways import EVERY_WAY, WHOLE_AND_STREAMED, Way
from tests.gateway.wire import body, read_stream

TARGET, BASELINE = "target", "baseline"
ASK = "max-age=60"
NEW, CACHED = ("miss", False), ("miss", True)
HIT = ("hit", True)


@dataclass
class Asker:
    """Asks the prompt `support` of a project whose rollout goes by users, half of whom get the target."""

    gateway: Gateway
    rollout: Rollout | None = None
    kept: int = 0
    users: dict[str, str] = field(default_factory=dict)

    def begin(self, prompt: Prompt) -> None:
        """Starts the rollout to the second version, and waits for every worker to see it."""
        self.rollout = prompt.roll_out(prompt.version_ids[1], 50, allocation_type="user_sticky")
        for variant in (TARGET, BASELINE):
            self.users[variant] = next(user for user in map(str, count()) if self._variant_of(user) == variant)
        for port in self.gateway.service.ports:
            self.gateway.service.until(
                lambda at=port: self._post({}, "no-store", self.users[TARGET], port=at).headers.get("x-svc-variant"),  # type: ignore[misc]
                lambda variant: variant == TARGET,
            )

    def ask(self, variant: str, *, cache: str = ASK, **fields: Any) -> tuple[str, bool]:
        """Returns the cache's part in the answer, and what the record says of the question. An answer that was not in
        the cache has been stored then, if it is to be."""
        response = self._post(fields, cache, self.users.get(variant, ""))
        assert response.status_code == 200, response.text
        if fields.get("stream"):
            assert read_stream(response.content).text
        record = self.gateway.record(response)
        assert record.variant == (variant if self.rollout else "")
        if record.cache_status == "miss":
            self.kept += 1
            self.wait(lambda keys: len(keys) == self.kept)
        return seen(record)

    def wait(self, good: Callable[[list[bytes]], bool]) -> None:
        """Waits until the keys of the stored answers are as they should be."""
        with redis.Redis.from_url(self.gateway.service.environment["REDIS_URL"]) as client:
            pattern = prefix(self.gateway.project_id) + "*"
            assert good(self.gateway.service.until(lambda: list(client.scan_iter(match=pattern)), good))

    def _post(self, fields: dict[str, Any], cache: str, user: str, port: int | None = None) -> Any:
        sent = body(**{"prompt_config": "support", **fields})
        headers = {"cache-control": cache, "x-svc-user-id": user}
        return self.gateway.post(sent, headers={name: value for name, value in headers.items() if value}, port=port)

    def _variant_of(self, user: str) -> str:
        assert self.rollout is not None
        kind = AllocationType.USER_STICKY
        return variant_of(self.rollout.id, kind, 50, user_id=user, session_id="", request_id="").variant


def seen(record: RequestRecord) -> tuple[str, bool]:
    return record.cache_status, record.question_cached


@pytest.fixture
def asker(scripted: Scripted) -> Asker:
    gateway, _ = scripted(play.answer("Hello"))
    made = Asker(gateway)
    made.begin(make_prompt(gateway, "Old.", "New."))
    return made


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("first", [TARGET, BASELINE])
def test_question__in_neither_own_others_and_both_caches(asker: Asker, first: str, stream: bool) -> None:
    second = BASELINE if first == TARGET else TARGET

    assert asker.ask(first, stream=stream) == NEW
    assert asker.ask(first, stream=stream) == HIT
    assert asker.ask(second, stream=stream) == CACHED
    assert asker.ask(first, stream=stream) == asker.ask(second, stream=stream) == HIT
    # Whole answers and streams are kept apart, and so are other questions.
    assert asker.ask(second, stream=not stream) == NEW
    assert asker.ask(second, stream=stream, seed=1) == NEW


def test_question__answered_before_the_rollout__is_known_to_the_target(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer("Hello"))
    prompt = make_prompt(gateway, "Old.", "New.")
    asker = Asker(gateway)
    gateway.service.until(lambda: gateway.post(body(prompt_config="support")).status_code, lambda code: code == 200)
    assert asker.ask("") == NEW
    assert asker.ask("") == ("hit", False)

    asker.begin(prompt)

    assert asker.ask(TARGET) == CACHED
    assert asker.ask(BASELINE) == HIT


def test_question__answer_of_the_other_arm_expired__is_new(asker: Asker) -> None:
    assert asker.ask(BASELINE, cache="max-age=1") == NEW
    asker.wait(lambda keys: not keys)
    asker.kept = 0

    assert asker.ask(TARGET) == NEW


@pytest.mark.parametrize(("cache", "expected"), [("max-age=7200", CACHED), ("max-age=600", NEW)])
def test_question__old_answer_of_the_other_arm__is_known_if_the_client_takes_it(
    asker: Asker, cache: str, expected: tuple[str, bool]
) -> None:
    assert asker.ask(BASELINE) == NEW
    with redis.Redis.from_url(asker.gateway.service.environment["REDIS_URL"]) as client:
        (key,) = client.scan_iter(match=prefix(asker.gateway.project_id) + "*")
        kept: Any = client.get(key)
        answer = msgspec.msgpack.decode(kept, type=CachedAnswer)
        older = msgspec.structs.replace(answer, kept_at=time.time() - 3600)
        client.set(key, msgspec.msgpack.encode(older), keepttl=True)

    assert asker.ask(TARGET, cache=cache) == expected


@pytest.mark.parametrize("cache", ["", "no-store", "no-cache", "max-age=0"])
def test_request__whose_cache_is_off__is_never_of_a_cached_question(asker: Asker, cache: str) -> None:
    assert asker.ask(BASELINE) == NEW

    assert asker.ask(TARGET, cache=cache) == ("skip", False)


def test_question__of_another_prompt__is_another(asker: Asker) -> None:
    make_prompt(asker.gateway, "Old.", "New.", name="sales")
    named = {"prompt_config": "sales"}
    asker.gateway.service.until(
        lambda: asker.gateway.post(body(**named)).status_code,
        lambda code: code == 200,
    )
    response = asker.gateway.post(body(**named), headers={"cache-control": ASK})
    assert seen(asker.gateway.record(response)) == NEW
    asker.kept += 1
    asker.wait(lambda keys: len(keys) == 1)

    assert asker.ask(TARGET) == NEW


def test_question__of_a_forced_variant__is_in_no_comparison(asker: Asker) -> None:
    assert asker.ask(BASELINE) == NEW

    headers = {"cache-control": ASK, "x-svc-force-variant": TARGET}
    response = asker.gateway.post(body(prompt_config="support"), headers=headers)

    assert seen(asker.gateway.record(response)) == NEW


def test_question__variables_of_the_prompt__are_those_that_the_arm_uses(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer("Hello"))
    asker = Asker(gateway)
    asker.begin(make_prompt(gateway, "Dear {{first}}.", "Dear {{last}}."))

    def ask(variant: str, first: str, last: str) -> tuple[str, bool]:
        return asker.ask(variant, prompt_variables={"first": first, "last": last})

    assert ask(BASELINE, "Ann", "Lee") == NEW
    # The baseline would have answered this one from its cache, and not the next.
    assert ask(TARGET, "Ann", "Ray") == CACHED
    assert ask(TARGET, "Bob", "Lee") == NEW
    assert ask(BASELINE, "Bob", "Ray") == CACHED


def test_question__that_the_other_arm_would_refuse__is_looked_up_in_its_own_cache_alone(scripted: Scripted) -> None:
    gateway, _ = scripted(play.answer("Hello"))
    asker = Asker(gateway)
    asker.begin(make_prompt(gateway, "Dear {{first}}.", "Dear {{first}} {{last}}."))
    fields: dict[str, Any] = {"prompt_variables": {"first": "Ann"}}

    assert asker.ask(BASELINE, **fields) == NEW
    assert asker.ask(BASELINE, **fields) == HIT


def test_question__of_versions_with_other_models__is_known_to_both(routed: Routed) -> None:
    gateway, _ = routed(openai=[play.answer("Hello")], groq=[play.answer("Hello")])
    prompt = make_prompt(gateway, "Be kind.", model="openai/gpt-4o")
    prompt.add("Be kind.", model="groq/llama-3.3-70b-versatile")
    asker = Asker(gateway)
    asker.begin(prompt)

    assert asker.ask(TARGET, model="auto") == NEW
    assert asker.ask(BASELINE, model="auto") == CACHED
    assert asker.ask(TARGET, model="auto") == asker.ask(BASELINE, model="auto") == HIT


@EVERY_WAY
@WHOLE_AND_STREAMED
def test_question__of_a_client_of_each_protocol__is_known(routed: Routed, way: Way, stream: bool) -> None:
    gateway, _ = routed(**{way.provider: [way.answer(text="Hello")]})
    asker = Asker(gateway)
    asker.begin(make_prompt(gateway, "Old for {{name}}.", "New for {{name}}.", model=way.model))
    fields: dict[str, Any] = {"prompt_config": "support", "prompt_variables": {"name": "Ann"}}

    def ask(variant: str) -> tuple[str, bool]:
        headers = {"cache-control": ASK, "x-svc-user-id": asker.users[variant]}
        response = way.ask(gateway, way.body(stream=stream, **fields), headers=headers)
        assert way.read(response).text == "Hello"
        return seen(gateway.record(response))

    assert ask(BASELINE) == NEW
    asker.wait(lambda keys: len(keys) == 1)
    assert ask(TARGET) == CACHED
    asker.wait(lambda keys: len(keys) == 2)
    assert ask(TARGET) == ask(BASELINE) == HIT
