"""What the service asks in the background leaves the last of each limit to clients."""

from __future__ import annotations

import time
from decimal import Decimal
from functools import partial
from uuid import uuid4

import msgspec
import pytest

from core.caller_limits import CallerLimits
from core.keys.services import KeyRecord
from gateway.evaluations.behind_clients import behind_clients
from gateway.pipeline.internal_client import Caller, ask
from gateway.project_settings.limits import ProjectLimits
from gateway.project_settings.settings import ProjectSettings
from gateway.runtime.runtime import Runtime
from gateway.snapshot.project import ProjectSnapshot
from gateway.worker.current import on_loop
from tests.factories.settings import make_settings
from tests.gateway.evaluations.conftest import Scene
from tests.gateway.evaluations.online import (
    JUDGE,
    POLITE,
    create,
    detail,
    ends,
    graded,
    judge,
    judge_all,
    priced,
    take_samples,
)
from tests.waiting import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

_CLIENT = msgspec.json.encode({"model": JUDGE, "messages": [{"role": "user", "content": "Hello"}], "max_tokens": 16})


def _clients(scene: Scene, count: int) -> list[int]:
    """Has clients ask one after the other; returns the statuses."""
    return on_loop(partial(_asked, scene=scene, count=count))


async def _asked(runtime: Runtime, scene: Scene, count: int) -> list[int]:
    snapshot = await runtime.snapshots.project(scene.project.pk)
    caller = Caller("")
    answers = [await ask(runtime, snapshot, caller, _CLIENT, seconds=30) for _ in range(count)]
    return [200 if one.error is None else one.error.status for one in answers]


@pytest.fixture
def early_in_a_minute() -> None:
    """A rate is one of a minute, which must not end while it is used up."""
    wait_until(lambda: time.time() % 60 < 30, what="the first half of a minute")


@pytest.mark.usefixtures("early_in_a_minute")
@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_rate__half_of_it_is_left_to_clients(scene: Scene) -> None:
    evaluation_id = judge(scene)
    make_settings(scene.project, rate_limit_enabled=True, rate_limit_rpm=8)
    for _ in range(8):
        scene.answered()
    take_samples()

    judge_all()
    served = _clients(scene, 5)

    counts = detail(scene, evaluation_id)["tasks"]
    assert (counts["done"], counts["due"], counts["missing"]) == (4, 4, 0)
    assert served == [200] * 4 + [429]


@pytest.mark.usefixtures("early_in_a_minute")
@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_rate__that_clients_use__leaves_judges_nothing(scene: Scene) -> None:
    evaluation_id = judge(scene)
    make_settings(scene.project, rate_limit_enabled=True, rate_limit_rpm=8)
    served = _clients(scene, 4)
    scene.answered()
    take_samples()

    judge_all()

    assert (served, ends(evaluation_id)) == ([200] * 4, [("due", "")])


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_tokens__more_than_background_has_in_a_minute__fail_at_once(scene: Scene) -> None:
    evaluation_id = judge(scene)
    make_settings(scene.project, rate_limit_enabled=True, rate_limit_tpm=2_000)
    scene.answered()
    take_samples()

    judge_all()

    assert ends(evaluation_id) == [("failed", "too_many_tokens")]
    assert scene.script.received == []


@pytest.mark.parametrize("scene", [[graded()]], indirect=True)
def test_budget__nearly_spent__skips_judging_and_serves_clients(scene: Scene) -> None:
    evaluation_id = judge(scene)
    # An answer of a client costs at most 0.0002 dollars, and a judge's reserves 0.01.
    make_settings(scene.project, monthly_budget_usd="0.01", budget_hard_stop=True)
    scene.answered()
    take_samples()

    judge_all()

    assert ends(evaluation_id) == [("skipped", "budget")]
    assert _clients(scene, 1) == [200]


def test_budget__of_the_month__is_a_tenth_of_the_projects_unless_given(scene: Scene) -> None:
    make_settings(scene.project, monthly_budget_usd="123.45")
    priced()
    evaluator_id = scene.evaluator("judge", criteria=[POLITE], model=JUDGE)

    first = create(scene, evaluator_id)
    own = create(scene, evaluator_id, monthly_budget_usd=1)
    rule = create(scene, scene.evaluator("contains", value="seven"))

    budgets = [detail(scene, one)["monthly_budget_usd"] for one in (first, own, rule)]
    assert budgets == [12.345, 1, None]
    answered = scene.api.patch(f"/api/llm/online-evaluations/{own}", {"monthly_budget_usd": None}, format="json")
    assert answered.json()["monthly_budget_usd"] == 12.345


def test_budget__of_neither__is_asked_for(scene: Scene) -> None:
    evaluator_id = scene.evaluator("judge", criteria=[POLITE], model=JUDGE)

    answered = scene.api.post("/api/llm/online-evaluations", {"evaluator_id": evaluator_id, "rate": 1}, format="json")

    assert answered.status_code == 400
    assert list(answered.json()["error"]["details"]) == ["monthly_budget_usd"]


def test_limits__of_project_key_team_and_users__are_shared_by_the_same_shares() -> None:
    every = CallerLimits(10, 1_001, 3, Decimal(20), Decimal("0.0000000001"))
    key = KeyRecord(7, uuid4(), "", frozenset(), None, limits=every, team_limits=every)
    other = KeyRecord(8, uuid4(), "", frozenset(), None, limits=every)
    snapshot = ProjectSnapshot(
        uuid4(), "", {"a": key, "b": other}, {}, {}, ProjectSettings(), 1,
        limits=ProjectLimits(1, 100, Decimal(10), True, Decimal(1), set_at_us=5),
        every_user=every,
        user_limits={"ann": every, "bob": None},
        plans={"a": 1},
    )  # fmt: skip

    found = behind_clients(snapshot, 7)

    shared = CallerLimits(5, 500, 1, Decimal(18), Decimal(0))
    assert found.limits == ProjectLimits(0, 50, Decimal(9), True, Decimal(1))
    assert found.limits.set_at_us == 5
    assert (found.keys["a"].limits, found.keys["a"].team_limits, found.keys["b"].limits) == (shared, shared, every)
    assert (found.every_user, found.user_limits, found.plans) == (shared, {"ann": shared, "bob": None}, {})
