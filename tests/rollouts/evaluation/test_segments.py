"""Segments: their evidence, which values become segments, and which are named."""

from __future__ import annotations

import math
import random
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rollouts.evaluation.json_form import from_json, to_json
from rollouts.evaluation.policy import Metric, Policy
from rollouts.evaluation.segments import (
    BLOCK_REQUESTS,
    MAX_CANDIDATES,
    MAX_SEGMENTS,
    MAX_VALUES,
    MIN_REQUESTS,
    Segment,
    SegmentArm,
    SegmentCounts,
    SegmentMinute,
    SegmentState,
    advance_segments,
    evidence_needed,
    initial_segments,
    named_segments,
    segment_evidence,
)
from rollouts.evaluation.terms import Action

WEIGHTS = (10, 25, 50, 100)


def counts(
    target: tuple[int, int] = (0, 0),
    baseline: tuple[int, int] = (0, 0),
    *,
    dimension: str = "language",
    value: str = "ja",
) -> SegmentCounts:
    """Returns the counts of a segment; an arm is its unanswered requests and all of them."""
    arms = [SegmentArm(requests, bad, requests - bad) for bad, requests in (target, baseline)]
    return SegmentCounts(dimension, value, target[1] + baseline[1], *arms)


def block(*segments: SegmentCounts, stage: int = 1) -> SegmentMinute:
    """Returns a minute that fills a block."""
    return SegmentMinute(stage, BLOCK_REQUESTS, segments, 2 * sum(one.allocated for one in segments))


def admitted(*values: str, policy: Policy | None = None) -> SegmentState:
    """Returns the state in which these languages are segments without any evidence."""
    state = initial_segments(policy or Policy(), WEIGHTS)
    return advance_segments(state, block(*[counts((0, 0), (0, MIN_REQUESTS), value=value) for value in values]))


def only(state: SegmentState) -> Segment:
    [segment] = state.segments
    return segment


def of(state: SegmentState, value: str) -> Segment:
    [segment] = [one for one in state.segments if one.value == value]
    return segment


@pytest.mark.parametrize("total", [5, 8])
def test_segment__every_choice_of_target_requests__has_mean_evidence_of_1(total: int) -> None:
    for bad in range(total + 1):
        for drawn in range(1, total):
            found = []
            for chosen in combinations(range(total), drawn):
                own = sum(one < bad for one in chosen)
                state = advance_segments(admitted("ja"), block(counts((own, drawn), (bad - own, total - drawn))))
                found.append(math.exp(segment_evidence(state, only(state))))
            assert math.fsum(found) / len(found) == pytest.approx(1)


@pytest.mark.parametrize("stages", [(1, 1, 2, 3), (2, 3, 1, 3), (1, 3, 2, 4)])
def test_segment__blocks_of_several_stages__are_a_martingale(stages: tuple[int, ...]) -> None:
    """The mean over two requests for each block, one of them bad and one of them the target's; late ones as well."""
    means = []
    for number in range(2 ** len(stages)):
        state = admitted("ja")
        for place, stage in enumerate(stages):
            own = number >> place & 1
            state = advance_segments(state, block(counts((own, 1), (1 - own, 1)), stage=stage))
        means.append(math.exp(segment_evidence(state, only(state))))

    assert math.fsum(means) / len(means) == pytest.approx(1)


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 20), st.integers(0, 60)), max_size=8))
def test_segment__target_with_more_unanswered__has_no_less_evidence(minutes: list[tuple[int, int, int]]) -> None:
    def after(more: int) -> float:
        state = admitted("ja")
        for bad, drawn, others in minutes:
            own = min(bad + more, drawn)
            state = advance_segments(state, block(counts((own, drawn), (0, others))))
        return segment_evidence(state, only(state))

    assert after(1) >= after(0) - 1e-9


def test_value__with_enough_requests__is_a_segment_from_the_next_minute_on() -> None:
    state = initial_segments(Policy(), WEIGHTS)
    state = advance_segments(state, block(counts((5, 5), (0, MIN_REQUESTS - 6))))
    assert state.segments == ()
    assert state.candidates == {"language": {"ja": MIN_REQUESTS - 1}}

    state = advance_segments(state, block(counts((9, 9), (0, 20))))
    assert [one.key for one in state.segments] == [("language", "ja")]
    assert state.candidates == {}
    assert only(state).target == SegmentArm()
    assert segment_evidence(state, only(state)) == pytest.approx(0)

    state = advance_segments(state, block(counts((9, 9), (0, 20))))
    assert only(state).target.requests == 9
    assert segment_evidence(state, only(state)) > 1


def test_values__become_segments_by_their_requests_and_not_by_their_outcomes() -> None:
    rng = random.Random(7)
    sizes = {f"{number}": rng.randrange(1, 200) for number in range(300)}

    def segments(share: float) -> list[tuple[str, str]]:
        made = [
            counts((round(share * size / 10), size // 10), (0, size - size // 10), value=value)
            for value, size in sizes.items()
        ]
        state = advance_segments(initial_segments(Policy(), WEIGHTS), block(*made))
        return [one.key for one in state.segments]

    largest = sorted(sizes, key=lambda value: (-sizes[value], value))[:MAX_VALUES]
    assert segments(0.0) == segments(1.0) == [("language", value) for value in largest]


def test_state__any_number_of_values__stays_small() -> None:
    state = initial_segments(Policy(), WEIGHTS)
    for number in range(40):
        many = [
            counts(
                (0, 3), (0, 30 if number < 10 else 9), dimension=f"metadata.{number % 12}", value=f"{number}-{place}"
            )
            for place in range(80)
        ]
        state = advance_segments(state, block(*many))

    assert len(state.segments) == MAX_SEGMENTS
    assert all(len(values) <= MAX_CANDIDATES for values in state.candidates.values())
    assert from_json(SegmentState, to_json(state)) == state


def test_block__of_a_rare_segment__is_judged_when_the_rollout_had_enough_requests() -> None:
    state = admitted("ja", "en")
    for _ in range(3):
        state = advance_segments(state, SegmentMinute(1, BLOCK_REQUESTS // 4, (counts((1, 1), (0, 6)),)))
    ja = of(state, "ja")
    assert (ja.target.requests, ja.all_target.requests) == (0, 3)
    assert segment_evidence(state, ja) == pytest.approx(0)

    state = advance_segments(state, SegmentMinute(1, BLOCK_REQUESTS // 4, ()))
    ja = of(state, "ja")
    assert (ja.target.requests, ja.all_target.requests) == (3, 3)
    assert segment_evidence(state, ja) > 0.5

    state = advance_segments(state, SegmentMinute(2, 10, (counts((1, 1), (0, 6)),)))
    state = advance_segments(state, SegmentMinute(3, 10, ()))
    assert segment_evidence(state, of(state, "ja")) > segment_evidence(state, ja)


def test_named__one_segment_always_fails__is_named_alone_and_the_first() -> None:
    state = admitted("ja", "en", "de")
    for _ in range(6):
        state = advance_segments(
            state,
            block(counts((3, 3), (1, 27)), counts((2, 50), (22, 450), value="en"), counts((1, 9), (4, 91), value="de")),
        )

    assert [one.key for one in named_segments(state)] == [("language", "ja")]
    assert segment_evidence(state, named_segments(state)[0]) >= evidence_needed(0)


def test_named__difference_too_small_to_matter__is_not() -> None:
    """Three times the events by certainty alone: 0.3 % against 0.1 %."""
    state = admitted("en")
    for _ in range(60):
        state = advance_segments(state, block(counts((15, 5000), (5, 5000), value="en")))

    assert segment_evidence(state, only(state)) > evidence_needed(0)
    assert named_segments(state) == []


def test_named__segment_that_is_nearly_all_of_the_traffic__is_not() -> None:
    def after(counted: int) -> SegmentState:
        state = admitted("ja")
        for _ in range(6):
            state = advance_segments(state, SegmentMinute(1, BLOCK_REQUESTS, (counts((3, 3), (1, 27)),), counted))
        return state

    assert named_segments(after(37)) == []
    assert [one.key for one in named_segments(after(38))] == [("language", "ja")]


def test_named__stays_so__whatever_comes_afterwards() -> None:
    state = admitted("ja")
    for _ in range(6):
        state = advance_segments(state, block(counts((3, 3), (1, 27))))
    for _ in range(200):
        state = advance_segments(state, block(counts((0, 3), (27, 27))))

    assert [one.key for one in named_segments(state)] == [("language", "ja")]
    assert segment_evidence(state, only(state)) < 0


def test_signal__that_the_policy_ignores__is_not_looked_at() -> None:
    def broken(policy: Policy) -> SegmentState:
        state = admitted("ja", policy=policy)
        for _ in range(6):
            arms = SegmentArm(5, 0, 5, contract=5), SegmentArm(25, 0, 25)
            state = advance_segments(state, block(SegmentCounts("language", "ja", 30, *arms)))
        return state

    assert [one.key for one in named_segments(broken(Policy()))] == [("language", "ja")]
    ignoring = broken(Policy(contract=Action.IGNORE))
    assert Metric.CONTRACT not in only(ignoring).signals
    assert named_segments(ignoring) == []
    nothing = Policy(unanswered=Action.IGNORE, contract=Action.IGNORE, empty=Action.IGNORE)
    assert named_segments(broken(nothing)) == []
