"""`python -m tests.live.acceptance.later`: evaluates rollouts of the service on VAR_DIR as it will be in some minutes.

Standard input is `[[project id, rollout id, requests], ...]`. The command first waits until so many requests of each
rollout are in the request log or on the lists of open requests. It is a separate process, because the service has
another database than the test process.
"""

from __future__ import annotations

import json
import os
import sys
from datetime import UTC, datetime, timedelta
from unittest import mock
from uuid import UUID

import django
import time_machine

MINUTES = 5
"""The minutes by which the clock is ahead: a minute closes, is evaluated after the default lag, and open requests
have been open for longer than the longest limit."""


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
    django.setup()
    rollouts = [(UUID(project), UUID(rollout), count) for project, rollout, count in json.load(sys.stdin)]
    for rollout in rollouts:
        _wait_until_known(*rollout)
    # The store's clock is not moved, and every record is visible to it.
    with (
        time_machine.travel(datetime.now(UTC) + timedelta(minutes=MINUTES), tick=True),
        mock.patch("rollouts.verdicts.evaluate.visible_until", lambda: datetime.now(UTC)),
    ):
        for _, rollout_id, _ in rollouts:
            _evaluate(rollout_id)


def _wait_until_known(project_id: UUID, rollout_id: UUID, count: int) -> None:
    from analytics.queries.variants import arm_totals
    from rollouts.open_requests.lists import open_requests
    from tests.waiting import wait_until

    now = datetime.now(UTC)
    since, until = now - timedelta(hours=1), now + timedelta(hours=1)

    def known() -> bool:
        arms = arm_totals(project_id, rollout_id, since, until)
        return sum(arm.requests for arm in arms.values()) + len(open_requests(rollout_id)) >= count

    wait_until(known, what=f"{count} requests of rollout {rollout_id}")


def _evaluate(rollout_id: UUID) -> None:
    from rollouts.models import Rollout
    from rollouts.states import Status
    from rollouts.verdicts.evaluate import evaluate_rollout
    from tests.waiting import wait_until

    def evaluated() -> bool:
        if evaluate_rollout(rollout_id) is not None:
            return True
        return not Rollout.objects.filter(pk=rollout_id, status=Status.RUNNING.value).exists()

    wait_until(evaluated, what=f"an evaluation of rollout {rollout_id}")


if __name__ == "__main__":
    main()
