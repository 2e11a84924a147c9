from __future__ import annotations

import re

import pytest
from django.test import Client

from rollouts.evaluation import Policy, to_json
from rollouts.evaluation.segments import (
    BLOCK_REQUESTS,
    SegmentArm,
    SegmentCounts,
    SegmentMinute,
    advance_segments,
    initial_segments,
)
from rollouts.models import RolloutEvaluation
from tests.console.rollouts.test_rollout import path_of, signed_in, text_of
from tests.factories.core import make_key
from tests.factories.rollouts import make_rollout

pytestmark = pytest.mark.django_db


def test_panel__one_key_fails__is_named_first(client: Client) -> None:
    rollout = make_rollout(started=True)
    key_id = str(make_key(rollout.project, name="<Tokyo>")[0].pk)
    bad = SegmentCounts("key", key_id, 40, SegmentArm(5, 5), SegmentArm(35, 1, 34, contract=2))
    good = SegmentCounts("metadata.team", "search", 40, SegmentArm(5, 0, 5), SegmentArm(1_035, 3, 1_032))
    state = initial_segments(Policy(), [10, 50, 100])
    for _ in range(5):
        state = advance_segments(state, SegmentMinute(1, BLOCK_REQUESTS, (good, bad), 2_000))
    RolloutEvaluation.objects.filter(rollout=rollout).update(segments=to_json(state))

    text = text_of(signed_in(client, rollout).get(path_of(rollout), {"panel": "segments"}))

    assert "The target is worse for key &lt;Tokyo&gt;. This is a warning" in text
    assert text.index("<strong>&lt;Tokyo&gt;</strong>") < text.index("search")
    assert "20 of 20" in text
    assert re.search(rf'<a href="[^"]*api_key_id={key_id}[^"]*">20 of 20</a>', text)
    assert "4 of 140, 8 broke the schema" in text
    assert "12 of 4,140" in text


def test_panel__nothing_counted_yet__says_so(client: Client) -> None:
    rollout = make_rollout(started=True)

    text = text_of(signed_in(client, rollout).get(path_of(rollout), {"panel": "segments"}))

    assert "No part of the traffic has had 30 requests yet." in text
