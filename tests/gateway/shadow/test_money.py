"""The budget of a shadow: nothing is asked that it has no room for, and what is spent is booked to the last digit."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest

from analytics.clickhouse import client
from gateway.models import ExperimentAnswer
from tests.gateway.experiments.test_erasure import ship
from tests.gateway.shadow.conftest import BETTER, JUDGE, ShadowScene, only_experiment, preferring

# Each answer costs five cents and a bit.
LONG = preferring("warm", usage={"prompt_tokens": 11, "completion_tokens": 5003, "total_tokens": 5014})
_SPENT = """
SELECT toString(source) AS source, count() AS requests, toString(sum(cost_usd)) AS cost
FROM requests WHERE project_id = {project:UUID} AND source IN ('shadow', 'judge') GROUP BY source ORDER BY source
"""


def logged(shadow: ShadowScene) -> dict[str, tuple[int, Decimal]]:
    """Returns by source the requests of the log and what they cost."""
    rows: Any = client.execute(_SPENT, {"project": shadow.scene.project_id})
    return {source: (count, Decimal(cost)) for source, count, cost in rows}


@pytest.mark.parametrize("scene", [[LONG]], indirect=True)
def test_budget__spent_in_the_middle__ends_the_shadow_and_every_cent_is_in_the_log(shadow: ShadowScene) -> None:
    # A comparison reserves the judge's longest answer twice: 32,768 tokens at 10 dollars for a million.
    budget = 1.5
    judge = shadow.evaluator_id(question="Which is warmer?", model=JUDGE, max_tokens=16_384)
    made = shadow.create(shadow={"budget_usd": budget, "evaluator_id": judge})
    for number in range(20):
        shadow.served(f"When, for the time {number}?", fields={"max_tokens": 8000})

    shadow.run()
    ship()

    experiment = only_experiment()
    assert (experiment.state, experiment.failure_code) == ("failed", "budget")
    assert experiment.reserved_usd == Decimal(0)
    # Less is left than a comparison may cost, and never more was spent than there was.
    assert Decimal(str(budget)) - 2 * Decimal("0.33") < experiment.spent_usd <= Decimal(str(budget))
    found = logged(shadow)
    assert sum((cost for _, cost in found.values()), Decimal(0)) == experiment.spent_usd
    gate = shadow.gate(made["id"])
    assert gate["state"] == "not_passed"
    assert gate["reason"].startswith("The shadow ended before it had a verdict, after ")
    assert "max_cost_usd" in gate["reason"]
    assert gate["shadow"]["failure"] in gate["reason"]
    assert not ExperimentAnswer.objects.filter(state__in=("pending", "running", "answered", "scoring")).exists()


@pytest.mark.parametrize("scene", [[BETTER]], indirect=True)
def test_cost__is_in_the_log_under_the_source_shadow_and_of_no_rollout(shadow: ShadowScene) -> None:
    made = shadow.create()
    request_id = shadow.served()

    shadow.run()
    ship()

    found = logged(shadow)
    assert {source: count for source, (count, _) in found.items()} == {"judge": 2, "shadow": 1}
    assert sum((cost for _, cost in found.values()), Decimal(0)) == only_experiment().spent_usd
    sql = (
        "SELECT toString(rollout_id), toString(variant), alloc_unit, user_id, session_id, prompt_version,"
        " attributes['experiment_item_request_id'], attributes['no_store']"
        " FROM requests WHERE project_id = {project:UUID} AND source = 'shadow'"
    )
    rows: Any = client.execute(sql, {"project": shadow.scene.project_id})
    nobody = "00000000-0000-0000-0000-000000000000"
    assert [tuple(row) for row in rows] == [(nobody, "", 0, "", "", 2, request_id, "")]
    shadow.move(made["id"], "start", override_gate=True, reason="Now.")
    metrics = shadow.scene.api.get(f"/api/llm/prompts/rollouts/{made['id']}/metrics").json()
    assert metrics["target"]["answered_count"] == metrics["baseline"]["answered_count"] == 0
