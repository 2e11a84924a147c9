"""The choice among several deployments of one provider: shares, sessions, failures, names, models and prices."""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from decimal import Decimal
from types import SimpleNamespace
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.keys.services import KeyRecord
from gateway.errors import ModelNotFoundError
from gateway.model_list.catalog import callable_models
from gateway.pipeline.call import _request_of
from gateway.pipeline.context import Attempt, RequestContext, RequestState
from gateway.pipeline.failover import first_answer
from gateway.pipeline.select import select
from gateway.project_settings.settings import ProjectSettings
from gateway.protocol.headers import RequestHeaders
from gateway.protocol.wire import LazyFields, decode_request
from gateway.runtime.deadlines import Deadlines
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from integrations.access.deployments import Deployment, first_of_each_kind, in_use, rank
from integrations.health.monitor import HealthMonitor
from integrations.pricing.cost import Price
from integrations.providers.base import Credentials
from integrations.providers.errors import FailureKind, ProviderError
from integrations.providers.usage import estimated_tokens
from tests.gateway.scene import TIMEOUTS, Clock
from tests.tables.cases import tabled

PROJECT = UUID(int=1)
REQUESTS = 10_000
LISTED, OWN = Price(Decimal(2), Decimal(8)), Price(Decimal(1), Decimal(4))


def deployment(name: str, number: int, provider: str = "openai", **fields: Any) -> Deployment:
    return Deployment(name, Credentials(number, provider, "", "key"), **fields)


THREE = (
    deployment("openai", 1, weight=70),
    deployment("openai-eu", 2, weight=20),
    deployment("openai-us", 3, weight=10),
)
OTHERS = (deployment("anthropic", 4, "anthropic"), deployment("azure_openai", 5, "azure_openai"))


@dataclass
class Project:
    """A project with deployments whose providers' answers are made up by `call`."""

    deployments: tuple[Deployment, ...]
    routing: dict[str, Any] = field(default_factory=dict)
    dead: set[str] = field(default_factory=set)
    failure: Callable[[], ProviderError] = lambda: ProviderError("down", kind=FailureKind.UNAVAILABLE)

    def __post_init__(self) -> None:
        self.clock = Clock()
        self.health = HealthMonitor("redis://127.0.0.1:1/0", clock=self.clock, draw=lambda: 0.0)
        chosen = in_use(self.deployments)
        self.snapshot = ProjectSnapshot(
            PROJECT,
            str(PROJECT),
            {},
            first_of_each_kind(chosen or self.deployments),
            {("openai", "gpt-4o"): LISTED},
            ProjectSettings(**self.routing),
            1,
            deployments={one.name: one for one in chosen},
        )
        self.runtime = cast(
            Runtime,
            SimpleNamespace(health=self.health, deadlines=Deadlines(TIMEOUTS, body=100, ttft=100, total=1000.0)),
        )

    def context(self, **fields: Any) -> RequestContext:
        body = json.dumps({"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}], **fields}).encode()
        return RequestContext(self.snapshot, RequestHeaders(), body, decode_request(body), LazyFields(body))

    def attempts(self, key: str = "a", **fields: Any) -> list[Attempt]:
        return select(self.context(**fields), self.health, key)

    def names(self, key: str = "a", **fields: Any) -> list[str]:
        return [attempt.deployment or attempt.provider for attempt in self.attempts(key, **fields)]

    async def answered_by(self, context: RequestContext, key: str) -> str:
        """Returns the deployment that answers one request, which passes selection and failover."""
        self.clock.now += 0.02
        record = KeyRecord(1, PROJECT, "", frozenset({"gateway"}), None)
        state = RequestState(key, 0, time.perf_counter(), self.snapshot, record, RequestHeaders(), context.body)

        async def call(attempt: Attempt) -> str:
            if attempt.deployment in self.dead:
                raise self.failure()
            return attempt.deployment

        return await first_answer(self.runtime, select(context, self.health, key), state, call)

    def shares(self, keys: range) -> dict[str, float]:
        async def run() -> Counter[str]:
            context = self.context()
            return Counter([await self.answered_by(context, f"request-{number}") for number in keys])

        counted = asyncio.run(run())
        assert counted.total() == len(keys)
        return {name: count / len(keys) for name, count in counted.items()}


WEIGHTED = {"openai": 0.7, "openai-eu": 0.2, "openai-us": 0.1}


def test_shares__10_000_requests__those_of_the_weights_within_one_percent() -> None:
    assert Project(THREE).shares(range(REQUESTS)) == pytest.approx(WEIGHTED, abs=0.01)


@pytest.mark.parametrize(
    "failure",
    [
        lambda: ProviderError("down", kind=FailureKind.UNAVAILABLE),
        lambda: ProviderError("slow down", kind=FailureKind.RATE_LIMITED, retry_after=30.0),
    ],
)
def test_shares__one_dies_and_comes_back__no_client_error_and_its_share_moves_and_returns(
    failure: Callable[[], ProviderError],
) -> None:
    project = Project(THREE, failure=failure)
    project.dead = {"openai"}
    assert project.shares(range(2000)) == pytest.approx({"openai-eu": 2 / 3, "openai-us": 1 / 3}, abs=0.03)
    project.dead = set()
    project.clock.now += 60.0
    project.shares(range(10))
    assert project.shares(range(2000, 2000 + REQUESTS)) == pytest.approx(WEIGHTED, abs=0.01)


def test_sessions__while_all_are_well__every_one_keeps_its_deployment() -> None:
    project = Project(THREE)
    first = [project.names(f"session-{number}")[0] for number in range(1000)]
    for attempt in {project.attempts(f"session-{number}")[0].target for number in range(1000)}:
        for latency in (90.0, 4000.0, 900.0):
            project.health.note_success(attempt, latency)
    assert [project.names(f"session-{number}")[0] for number in range(1000)] == first


def test_sessions__one_dies__only_its_own_move_and_come_back() -> None:
    project = Project(THREE)
    before = {f"session-{number}": project.names(f"session-{number}")[0] for number in range(1000)}
    target = next(one.target for one in project.attempts() if one.deployment == "openai-eu")
    for _ in range(5):
        project.health.note_failure(target, FailureKind.UNAVAILABLE, 1.0)
    moved = {key for key, name in before.items() if project.names(key)[0] != name}
    assert moved == {key for key, name in before.items() if name == "openai-eu"}
    project.clock.now += 60.0
    project.health.note_success(target, 1.0)
    assert {key: project.names(key)[0] for key in before} == before


def test_select__retries_allowed__a_sibling_is_asked_at_once() -> None:
    project, asked = Project(THREE, {"retry_max_attempts": 3}), []
    context = project.context()
    record = KeyRecord(1, PROJECT, "", frozenset({"gateway"}), None)
    state = RequestState("id", 0, time.perf_counter(), project.snapshot, record, RequestHeaders(), context.body)

    async def call(attempt: Attempt) -> str:
        asked.append(attempt.deployment)
        if len(asked) < 3:
            raise ProviderError("wait", kind=FailureKind.RATE_LIMITED, retry_after=4.0)
        return attempt.deployment

    attempts = project.attempts()
    assert asyncio.run(first_answer(project.runtime, attempts, state, call)) == attempts[2].deployment
    assert asked == [attempt.deployment for attempt in attempts]
    assert [attempt.deployment for attempt in state.routing.failed] == asked[:2]


@tabled
def test_select__provider_object__takes_names_and_providers(preferences: dict[str, Any], expected: list[str]) -> None:
    """`openai` stands for all of its deployments, also where one is called so."""
    found = Project((*THREE, *OTHERS)).names(provider=preferences)
    assert found == expected


def test_select__provider_ignored__all_of_its_deployments_are() -> None:
    project = Project((*THREE, *OTHERS))
    with pytest.raises(ModelNotFoundError):
        project.names(provider={"ignore": ["openai", "azure_openai"]})


def test_select__several_providers__one_providers_deployments_stand_together() -> None:
    names = Project((*THREE, *OTHERS)).names()
    assert set(names[:3]) == {"openai", "openai-eu", "openai-us"}
    assert names[3:] == ["azure_openai"]


@tabled
def test_select__name_before_the_model__that_deployment_alone(model: str, expected: set[str]) -> None:
    assert set(Project((*THREE, *OTHERS)).names(model=model)) == expected


def test_select__fallback_order__names_and_providers_count() -> None:
    first = Project((*THREE, *OTHERS), {"fallback_order": ("openai-us", "anthropic")})
    assert first.names(model="claude-sonnet-4-5") == ["anthropic", "openai-us"]
    second = Project((*THREE, *OTHERS), {"fallback_order": ("openai",)})
    names = second.names(model="claude-sonnet-4-5")
    assert (names[0], set(names[1:])) == ("anthropic", {"openai", "openai-eu", "openai-us"})


def test_select__models_with_aliases__only_those_and_sent_by_their_own_names() -> None:
    eu = deployment(
        "eu", 2, "azure_openai", models={"gpt-4o": "my-gpt4o-eu", "house-model": "x1"}, prices={"gpt-4o": OWN}
    )
    project = Project((deployment("openai", 1), eu))

    attempts = project.attempts()
    assert [attempt.deployment for attempt in attempts] == ["openai", "eu"]
    assert [_request_of(project.context(), one, False).model for one in attempts] == ["gpt-4o", "my-gpt4o-eu"]
    assert [one.model for one in attempts] == ["gpt-4o", "gpt-4o"]
    assert [one.price_in(project.snapshot) for one in attempts] == [LISTED, OWN]
    assert project.names(model="gpt-4o-mini") == ["openai"]
    assert project.names(model="house-model") == ["eu"]
    assert _request_of(project.context(), project.attempts(model="house-model")[0], False).model == "x1"


def test_select__priority__the_lowest_while_it_is_well() -> None:
    project = Project((deployment("openai", 1, priority=1, weight=1000), deployment("eu", 2)))
    assert {tuple(project.names(str(number))) for number in range(50)} == {("eu", "openai")}
    for _ in range(5):
        project.health.note_failure(project.attempts()[0].target, FailureKind.UNAVAILABLE, 1.0)
    assert project.names() == ["openai", "eu"]


def test_model_list__deployments_with_models__lists_those_that_they_serve() -> None:
    eu = deployment("eu", 2, "azure_openai", models={"gpt-4o": "my-gpt4o-eu", "house-model": "x1"})
    alone = callable_models(Project((eu,)).snapshot)
    assert set(alone) == {"gpt-4o", "azure_openai/house-model"}
    for name in alone:
        assert Project((eu,)).names(model=name) == ["eu"]
    beside = callable_models(Project((eu, deployment("azure_openai", 3, "azure_openai"))).snapshot)
    assert set(alone) < set(beside)


@pytest.mark.parametrize("limit", ["rpm", "tpm"])
def test_select__vendors_limit_reached__others_answer_until_the_minute_is_over(limit: str) -> None:
    # A call counts one request, and the tokens that its prompt is estimated at.
    prompt = estimated_tokens(len(Project(THREE).context().body))
    limits: dict[str, Any] = {limit: 3 if limit == "rpm" else 3 * prompt}
    limited = deployment("openai-eu", 2, weight=1000, **limits)
    project = Project((deployment("openai", 1, weight=0), limited, *OTHERS))
    assert project.shares(range(3)) == {"openai-eu": 1.0}
    assert project.names() == ["openai", "azure_openai", "openai-eu"]
    assert project.shares(range(50)) == {"openai": 1.0}
    assert project.names(provider={"only": ["openai-eu"]}) == ["openai-eu"]
    project.clock.now += 60.0
    assert project.names()[0] == "openai-eu"


def test_in_use__one_plain_deployment_of_each_provider__there_is_nothing_to_choose() -> None:
    plain = (deployment("openai", 1), *OTHERS)
    assert in_use(plain) == ()
    project = Project(plain)
    assert [attempt.deployment for attempt in project.attempts()] == ["", ""]


names = st.lists(st.from_regex(r"[a-z][a-z0-9_-]{0,9}", fullmatch=True), min_size=2, max_size=6, unique=True)
keys = st.text(min_size=1, max_size=40)


def ranked(found: list[Deployment], key: str) -> list[str]:
    return [one.name for one in sorted(found, key=lambda one: rank(one, key))]


@given(names, st.data(), keys)
def test_rank__one_leaves__the_others_keep_their_order(found: list[str], data: st.DataObject, key: str) -> None:
    weights = data.draw(st.lists(st.integers(0, 1000), min_size=len(found), max_size=len(found)))
    every = [deployment(name, n, weight=weight) for n, (name, weight) in enumerate(zip(found, weights, strict=True))]
    gone = data.draw(st.sampled_from(every))
    assert ranked([one for one in every if one is not gone], key) == [n for n in ranked(every, key) if n != gone.name]


@given(names, st.data(), keys)
def test_rank__more_weight__never_a_later_place(found: list[str], data: st.DataObject, key: str) -> None:
    weight = data.draw(st.integers(1, 999))
    every = [deployment(name, n, weight=weight) for n, name in enumerate(found)]
    heavier = [deployment(found[0], 0, weight=data.draw(st.integers(weight, 1000))), *every[1:]]
    assert ranked(heavier, key).index(found[0]) <= ranked(every, key).index(found[0])


@given(names, st.data(), keys)
def test_rank__priority_and_weight_zero__as_documented(found: list[str], data: st.DataObject, key: str) -> None:
    every = [
        deployment(name, n, priority=data.draw(st.integers(0, 3)), weight=data.draw(st.integers(0, 2)))
        for n, name in enumerate(found)
    ]
    order = sorted(every, key=lambda one: rank(one, key))
    assert [(one.priority, one.weight == 0) for one in order] == sorted(
        (one.priority, one.weight == 0) for one in every
    )
