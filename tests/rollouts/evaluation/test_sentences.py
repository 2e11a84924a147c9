"""The sentences about metrics and decisions: short, without identifiers, and with a next step."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import pytest

from rollouts.evaluation import (
    Action,
    ArmCounts,
    Decision,
    Metric,
    Policy,
    Reason,
    State,
    Status,
    assess,
    decide,
    explain,
)
from rollouts.evaluation.explanation import LABELS
from rollouts.evaluation.policy import ALPHA, EXACT, FAIL_AT
from rollouts.evaluation.reasons import explain_decision
from rollouts.evaluation.state import Served
from rollouts.evaluation.words import about, dollars, in_words, milliseconds, named_reasons, share
from rollouts.states import Stage
from tests.rollouts.evaluation.minutes import after_minutes, arm, start
from tests.tables.cases import tabled

MAX_WORDS = 15
FULL = tuple(range(100, 1100, 100))
USUAL = replace(arm(10, ms=FULL, usd=("0.001",) * 10), answered=10)
STAGE = Stage(10, 30, 20)


def counts(**changes: Any) -> ArmCounts:
    return replace(USUAL, **changes)


def run(target: ArmCounts, minutes: int, policy: Policy | None = None, *, sticky: bool = False) -> State:
    return after_minutes(start(policy, sticky=sticky), minutes, target, USUAL)


def clustered() -> State:
    """Users who resemble each other: the requests decide against the target, its users do not."""
    state = run(counts(errors=5, unanswered=5, contract=5), 40, sticky=True)
    loud = {
        metric: replace(state.metrics[metric], evidence=99.0, next_design=4.0)
        for metric in (Metric.ERROR_RATE, Metric.CONTRACT)
    }
    return replace(state, metrics={**state.metrics, **loud})


_IGNORED: dict[str, Any] = {metric.value: Action.IGNORE for metric in ALPHA}
IGNORING = Policy(**_IGNORED)
DEAR = arm(10, ms=tuple(3 * one for one in FULL), usd=("0.004",) * 10)
STATES = {
    "nothing": start(),
    "sticky, nothing": start(sticky=True),
    "few": run(USUAL, 1),
    "equal": run(USUAL, 300),
    "worse": run(counts(errors=6, unanswered=6, contract=9, truncated=8, fallback=7, empty=6, stopped=5), 60),
    "perhaps worse": run(counts(errors=1, unanswered=1, contract=1, truncated=1, fallback=1, empty=1), 3),
    "slow and dear": run(replace(DEAR, answered=10), 60),
    "slightly slow": run(replace(arm(10, ms=tuple(int(1.09 * one) for one in FULL)), answered=10), 2000),
    "dear, rolls back": run(replace(DEAR, answered=10), 60, Policy(cost_per_request=Action.ROLL_BACK)),
    "ignored": run(counts(errors=6, unanswered=6), 60, IGNORING),
    "without prices": run(arm(10, ms=FULL), 5),
    "free": after_minutes(start(), 5, arm(10, ms=FULL), arm(10, ms=FULL)),
    "clustered": clustered(),
    "reasons": run(counts(unanswered=6, reasons={"missing_variable": 5, "client_left": 1}), 9),
    "unanswered": replace(start(), stage=1, stage_target=Served(22, 12), stage_baseline=Served(2000, 40)),
    "ill": replace(start(), stage_target=Served(90, 30), stage_baseline=Served(900, 300), usual=Served(9000, 90)),
}


def is_plain(text: str) -> bool:
    """Returns whether a text is whole sentences without identifiers and numbers of the statistics."""
    return not re.search(r"\w_\w|None|\b(?:nan|inf|evidence)\b|e-value|\de\+", text) and text.endswith(".")


@pytest.mark.parametrize("name", STATES)
def test_metric__every_state__one_short_plain_sentence(name: str) -> None:
    state = STATES[name]
    for metric in Metric:
        text = explain(state, metric)
        assert is_plain(text), text
        assert len(text.split()) <= MAX_WORDS, text
        assert ". " not in text


@pytest.mark.parametrize("reason", Reason)
def test_decision__every_reason__plain_and_with_a_next_step(reason: Reason) -> None:
    for state in STATES.values():
        for decision in Decision:
            text = explain_decision(state, assess(state), STAGE, decision, reason, 12.4)
            assert is_plain(text), text
            assert len(re.findall(r"\.(?: |$)", text)) >= 2, text


def test_labels__every_metric__a_name_that_is_no_identifier() -> None:
    assert set(LABELS) == set(Metric)
    assert not any("_" in name for name in LABELS.values())


@tabled
def test_metric__known_state__says_so(name: str, metric: Metric, sentence: str) -> None:
    assert explain(STATES[name], metric) == sentence


def test_metric__some_blocks__says_how_many_requests_it_takes() -> None:
    assert explain(run(USUAL, 8), Metric.ERROR_RATE) == "No difference seen yet (80 of about 400 requests)."


def test_metric__evidence_short_of_the_threshold__looks_worse() -> None:
    state = run(counts(errors=2, unanswered=0), 5)
    one = replace(state.metrics[Metric.ERROR_RATE], evidence=0.6 * FAIL_AT[Metric.ERROR_RATE])
    state = replace(state, metrics={**state.metrics, Metric.ERROR_RATE: one})
    assert explain(state, Metric.ERROR_RATE) == "Looks worse: 20.0 % against 0 %, which is not certain yet."


def test_metric__certain_and_small__too_little_to_act_on() -> None:
    state = STATES["slightly slow"]
    assert assess(state).metrics[Metric.LATENCY_AVERAGE].status is Status.PASSING
    strata = state.metrics[Metric.LATENCY_AVERAGE].strata
    loud = replace(state.metrics[Metric.LATENCY_AVERAGE], safe=(0.0,), evidence=99.0, strata=strata)
    state = replace(state, metrics={**state.metrics, Metric.LATENCY_AVERAGE: loud})
    assert explain(state, Metric.LATENCY_AVERAGE) == "Slightly worse: 597 ms against 554 ms, too little to act on."


def test_metric__users_alone_decide__says_whose() -> None:
    state = run(counts(errors=6, unanswered=6), 60, sticky=True)
    one = state.metrics[Metric.ERROR_RATE]
    assert one.users is not None
    loud = replace(one, evidence=0.0, users=replace(one.users, peak=99.0))
    text = explain(replace(state, metrics={**state.metrics, Metric.ERROR_RATE: loud}), Metric.ERROR_RATE)
    assert text == "Worse for its users: 60.0 % against 0 %, certain enough to roll back."


def test_decision__contract_broken__says_which_share_and_what_to_do() -> None:
    found = decide(run(counts(contract=9), 9), STAGE, elapsed_minutes=3)
    assert (found.decision, found.reason) == (Decision.ROLL_BACK, Reason.METRIC_FAILING)
    assert found.explanation == (
        "Breaks its schema: 90.0 % against 0 %. Certain enough to roll back."
        " Read the answers that break the schema and mend the prompt or the schema before you roll it out again."
    )


@pytest.mark.parametrize("metric", EXACT)
def test_decision__exact_signal_fails__named_by_its_label(metric: Metric) -> None:
    state = run(counts(**{metric.value: 9}), 9)
    action = state.policy.action(metric)
    found = decide(state, STAGE, elapsed_minutes=60)
    assert found.decision is (Decision.ROLL_BACK if action is Action.ROLL_BACK else Decision.WAIT)
    assert found.explanation.startswith(f"{LABELS[metric]}: 90.0 % against 0 %.")


def test_decision__both_arms_ill__says_so_and_compares_with_the_day_before() -> None:
    state = STATES["ill"]
    text = explain_decision(state, assess(state), STAGE, Decision.WAIT, Reason.WORSE_FOR_ALL, 60)
    assert text.startswith("Both versions leave requests unanswered: 33.3 % in this stage, 1.0 % on the day before.")


def test_decision__unanswered__names_the_reasons_in_words() -> None:
    text = decide(STATES["reasons"], STAGE, elapsed_minutes=3).explanation
    assert "The target's reasons so far: a variable is missing (45), the client left (9)." in text


def test_words__figures__as_people_write_them() -> None:
    assert [share(one) for one in (0, 0.0004, 0.061, 0.9996, 1)] == [
        "0 %",
        "under 0.1 %",
        "6.1 %",
        "over 99.9 %",
        "100 %",
    ]
    assert [milliseconds(one) for one in (0, 6.24, 840.4, 999.7, 12_345)] == [
        "0 ms",
        "6.2 ms",
        "840 ms",
        "1.0 s",
        "12.3 s",
    ]
    assert [dollars(one) for one in (0, 0.0000263, 0.0032, 1.5)] == ["$0", "$0.000026", "$0.0032", "$1.50"]
    assert [about(one) for one in (407.6, 96.0, 7.2, 12_345)] == ["400", "100", "7", "10,000"]
    assert [in_words(one) for one in (0.2, 53, 120, 5000)] == ["1 minute", "53 minutes", "2 hours", "4 days"]
    assert named_reasons({"other": 0, "client_left": 2, "new_reason": 1}) == "the client left (2), new reason (1)"
