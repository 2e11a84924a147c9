"""The decision about the sample: by hash alone, in both arms alike."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from datetime import UTC, datetime
from hashlib import sha256
from uuid import UUID

import pytest

from analytics.online_evaluations.sampling import (
    MAX_PER_BLOCK,
    Answered,
    Due,
    is_label_due,
    matched_sample,
    position_of,
    sample,
)

EVALUATION, EVALUATOR, ROLLOUT = UUID(int=1), UUID(int=2), UUID(int=3)
NOTHING = UUID(int=0)
AT = datetime(2026, 11, 20, 13, tzinfo=UTC)


def answered(rng: random.Random, variant: str = "", rollout_id: UUID = NOTHING) -> Answered:
    request_id = UUID(int=rng.getrandbits(128))
    return Answered(request_id, AT, AT, rollout_id, 1, variant, NOTHING, 0, is_compared=bool(variant))


def block(rng: random.Random, *, targets: int, baselines: int, rollout_id: UUID = ROLLOUT) -> list[Answered]:
    rows = [answered(rng, "target", rollout_id) for _ in range(targets)]
    rows += [answered(rng, "baseline", rollout_id) for _ in range(baselines)]
    rng.shuffle(rows)
    return rows


def arms(due: list[Due]) -> Counter[str]:
    return Counter(one.answered.variant for one in due)


def test_position__is_the_beginning_of_the_documented_hash() -> None:
    request_id = UUID("01890000-0000-7000-8000-000000000001")

    digest = sha256(f"{ROLLOUT}:eval:{EVALUATOR}:{request_id}".encode()).hexdigest()

    assert position_of(ROLLOUT, EVALUATOR, request_id) == int(digest[:16], 16) // 2


def test_label__is_due_by_the_documented_hash() -> None:
    request_id = UUID("01890000-0000-7000-8000-000000000001")
    digest = sha256(f"{ROLLOUT}:label:{EVALUATOR}:{request_id}".encode()).hexdigest()
    place = int(digest[:16], 16) / 2**64

    assert is_label_due(ROLLOUT, EVALUATOR, request_id, place + 1e-9)
    assert not is_label_due(ROLLOUT, EVALUATOR, request_id, place - 1e-9)
    assert is_label_due(ROLLOUT, EVALUATOR, request_id, 1)
    assert not is_label_due(ROLLOUT, EVALUATOR, request_id, None)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.5])
def test_labels__of_the_sample__are_a_fair_share_of_low_and_of_high_hashes(share: float) -> None:
    """Those that the sample took all have low hashes of its own: a dependence would make all or none of them due."""
    rng = random.Random(13)
    rows = [answered(rng) for _ in range(20_000)]
    due = sample(rows[:10_000], evaluation_id=EVALUATION, evaluator_id=EVALUATOR, rate=0.05)
    due += sample(rows[10_000:], evaluation_id=EVALUATION, evaluator_id=EVALUATOR, rate=0.05)

    ids = [one.answered.request_id for one in sorted(due, key=lambda one: one.position)]

    for half in (ids[: len(ids) // 2], ids[len(ids) // 2 :]):
        labelled = sum(is_label_due(EVALUATION, EVALUATOR, one, share) for one in half)
        assert abs(labelled - share * len(half)) <= 5 * (len(half) * share * (1 - share)) ** 0.5


@pytest.mark.parametrize("rate", [0.0, 0.01, 0.1, 0.5, 1.0])
def test_sample__takes_the_share_of_each_block_and_the_same_again(rate: float) -> None:
    rng = random.Random(7)
    blocks = [[answered(rng) for _ in range(500)] for _ in range(40)]

    def taken() -> list[UUID]:
        found = [sample(rows, evaluation_id=EVALUATION, evaluator_id=EVALUATOR, rate=rate) for rows in blocks]
        return [one.answered.request_id for due in found for one in due]

    chosen = taken()

    total = sum(map(len, blocks))
    # Five standard deviations of a fair draw.
    assert abs(len(chosen) - rate * total) <= 5 * (total * rate * (1 - rate)) ** 0.5
    for rows in blocks:
        rng.shuffle(rows)
    assert sorted(taken()) == sorted(chosen)


def test_sample__of_a_crowded_block__takes_the_lowest_hashes() -> None:
    rng = random.Random(8)
    rows = [answered(rng) for _ in range(MAX_PER_BLOCK + 200)]

    due = sample(rows, evaluation_id=EVALUATION, evaluator_id=EVALUATOR, rate=1)

    positions = sorted(position_of(EVALUATION, EVALUATOR, one.request_id) for one in rows)
    assert [one.position for one in due] == positions[:MAX_PER_BLOCK]


@pytest.mark.parametrize(("targets", "baselines"), [(0, 9), (9, 0), (3, 300), (300, 3), (50, 50), (1, 1)])
def test_matched_sample__takes_as_many_of_both_arms_by_lowest_hash(targets: int, baselines: int) -> None:
    rows = block(random.Random(9), targets=targets, baselines=baselines)

    due = matched_sample(rows, evaluator_id=EVALUATOR, rate=1)

    fewer = min(targets, baselines)
    assert (arms(due)["target"], arms(due)["baseline"]) == (fewer, fewer)
    for variant in ("target", "baseline"):
        of_arm = sorted(position_of(ROLLOUT, EVALUATOR, one.request_id) for one in rows if one.variant == variant)
        assert sorted(one.position for one in due if one.answered.variant == variant) == of_arm[:fewer]


def test_matched_sample__of_a_share__takes_it_of_the_arm_with_fewer_answers() -> None:
    rng, pairs = random.Random(10), 0
    for _ in range(400):
        found = arms(matched_sample(block(rng, targets=5, baselines=95), evaluator_id=EVALUATOR, rate=0.2))
        assert found["target"] == found["baseline"]
        pairs += found["target"]

    # 2,000 targets, of which a fifth is due; five standard deviations.
    assert abs(pairs - 400) <= 5 * (2000 * 0.2 * 0.8) ** 0.5


def test_matched_sample__two_rollouts_and_others__keeps_them_apart() -> None:
    rng, other = random.Random(11), UUID(int=4)
    rows = [
        *block(rng, targets=2, baselines=8),
        *block(rng, targets=7, baselines=1, rollout_id=other),
        *(answered(rng) for _ in range(20)),
        *(replace(answered(rng, "target", ROLLOUT), is_compared=False) for _ in range(20)),
    ]

    due = matched_sample(rows, evaluator_id=EVALUATOR, rate=1)

    assert Counter((one.answered.rollout_id, one.answered.variant) for one in due) == {
        (ROLLOUT, "target"): 2,
        (ROLLOUT, "baseline"): 2,
        (other, "target"): 1,
        (other, "baseline"): 1,
    }


def test_matched_sample__of_a_crowded_block__stays_matched() -> None:
    due = matched_sample(block(random.Random(12), targets=900, baselines=800), evaluator_id=EVALUATOR, rate=1)

    assert arms(due) == {"target": MAX_PER_BLOCK // 2, "baseline": MAX_PER_BLOCK // 2}
