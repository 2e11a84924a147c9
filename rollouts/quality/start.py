from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from analytics.evaluators.calibration.calibrate import calibrate
from analytics.evaluators.calibration.states import State as Calibrated
from analytics.evaluators.errors import EvaluatorNotFoundError, EvaluatorVersionNotFoundError
from analytics.evaluators.selectors import KnownVersion, get_version
from analytics.models import OnlineEvaluation
from analytics.online_evaluations.matched import matched_evaluations
from rollouts.errors import InvalidRolloutError
from rollouts.evaluation import Action
from rollouts.quality.entries import OUTCOME, RULE, QualityEntry, RolloutEvaluator, outcome_id

MAX_EVALUATORS = 5
"""As many as a project may have active online evaluations."""

_NO_EVALUATOR = "There is no such evaluator in this project."
_OF_EVALUATORS = "Is for evaluators: an outcome has none."
_GOAL_OF_OUTCOME = "The goal of an A/B test is an outcome: name its `score_name`."
_IGNORED_GOAL = "The goal of an A/B test decides: take `hold` or `roll_back`."
_NO_RANGE = "Must differ from `worst`: the value that counts as 1 from the one that counts as 0."
_NO_VERSION = "The evaluator has no such version."
_TWICE = "The rollout names this version of the evaluator, or this outcome, twice."
_REQUIRED_AND_IGNORED = "An evaluator that is ignored decides nothing, so that it cannot be required."
_NOT_SAMPLED = (
    "No active online evaluation takes a matched sample for this evaluator{version} and prompt config. Make one with"
    " `POST online-evaluations` and `matched`, or change one with `PATCH online-evaluations/{{evaluation_id}}`."
)
_OTHER_SHARE = (
    "The online evaluation of this evaluator has {share}, and people label by that. Change it there with"
    " `PATCH online-evaluations/{{evaluation_id}}`, or leave it out here."
)


def check_entries(project_id: UUID, config_id: UUID, entries: Sequence[QualityEntry]) -> None:
    _checked(project_id, config_id, entries)


def evaluators_at_start(
    project_id: UUID, config_id: UUID, entries: Sequence[QualityEntry]
) -> tuple[RolloutEvaluator, ...]:
    found = _checked(project_id, config_id, entries)
    return tuple(
        _outcome(entry) if one is None else _begun(project_id, entry, *one)
        for entry, one in zip(entries, found, strict=True)
    )


def standing_evaluators(project_id: UUID, config_id: UUID) -> list[RolloutEvaluator]:
    """Returns what the evaluators that a rollout of the config could name would be at its start. Raises the errors of
    the request log."""
    found = matched_evaluations(project_id, config_id)
    return [
        _begun(project_id, QualityEntry(evaluator_id), get_version(project_id, evaluator_id, number), evaluation)
        for (evaluator_id, number), evaluation in found.items()
    ]


def _checked(
    project_id: UUID, config_id: UUID, entries: Sequence[QualityEntry]
) -> list[tuple[KnownVersion, OnlineEvaluation] | None]:
    """Returns the version and the online evaluation of each; None for an outcome."""
    if len(entries) > MAX_EVALUATORS:
        raise InvalidRolloutError("quality", f"At most {MAX_EVALUATORS} evaluators and outcomes together.")
    sampled = matched_evaluations(project_id, config_id)
    found: list[tuple[KnownVersion, OnlineEvaluation] | None] = []
    titles: set[str] = set()
    for number, entry in enumerate(entries):
        if entry.required and entry.action is Action.IGNORE:
            raise _error(number, "required", _REQUIRED_AND_IGNORED)
        if entry.goal and entry.score_name is None:
            raise _error(number, "goal", _GOAL_OF_OUTCOME)
        if entry.evaluator_id is None:
            _check_outcome(entry, number, titles)
            found.append(None)
            continue
        known = _version(project_id, entry.evaluator_id, entry, number)
        if known.title in titles:
            raise _error(number, "evaluator_id", _TWICE)
        titles.add(known.title)
        evaluation = sampled.get((known.evaluator_id, known.number))
        if evaluation is None:
            version = "" if entry.version is None else f", version {entry.version},"
            raise _error(number, "evaluator_id", _NOT_SAMPLED.format(version=version))
        _check_share(entry, evaluation, number)
        found.append((known, evaluation))
    return found


def _check_outcome(entry: QualityEntry, number: int, titles: set[str]) -> None:
    for field in ("version", "label_share"):
        if getattr(entry, field) is not None:
            raise _error(number, field, _OF_EVALUATORS)
    if entry.goal and entry.action is Action.IGNORE:
        raise _error(number, "action", _IGNORED_GOAL)
    if entry.best == entry.worst:
        raise _error(number, "best", _NO_RANGE)
    title = entry.score_name or ""
    if title in titles:
        raise _error(number, "score_name", _TWICE)
    titles.add(title)


def _outcome(entry: QualityEntry) -> RolloutEvaluator:
    name = entry.score_name or ""
    return RolloutEvaluator(
        evaluator_id=outcome_id(name),
        version_id=outcome_id(name),
        version=1,
        title=name,
        kind=OUTCOME,
        action=entry.action or Action.ROLL_BACK,
        margin=entry.margin,
        required=entry.required,
        calibration=RULE,
        is_outcome=True,
        goal=entry.goal,
        score_name=name,
        worst=entry.worst,
        best=entry.best,
    )


def _version(project_id: UUID, evaluator_id: UUID, entry: QualityEntry, number: int) -> KnownVersion:
    try:
        return get_version(project_id, evaluator_id, entry.version)
    except EvaluatorNotFoundError:
        raise _error(number, "evaluator_id", _NO_EVALUATOR) from None
    except EvaluatorVersionNotFoundError:
        raise _error(number, "version", _NO_VERSION) from None


def _check_share(entry: QualityEntry, evaluation: OnlineEvaluation, number: int) -> None:
    share = evaluation.label_share
    if entry.label_share and entry.label_share != share:
        has = "no label_share" if share is None else f"a label_share of {share:g}"
        raise _error(number, "label_share", _OTHER_SHARE.format(share=has))


def _begun(
    project_id: UUID, entry: QualityEntry, known: KnownVersion, evaluation: OnlineEvaluation
) -> RolloutEvaluator:
    calibration, scale = RULE, None if known.definition.asks_a_model else 1.0
    if known.definition.asks_a_model:
        standing = calibrate(project_id, known.evaluator_id, known.number).standing
        calibration, scale = standing.state.value, standing.margin_scale
    is_rule, is_calibrated = calibration == RULE, calibration == Calibrated.CALIBRATED
    # With 0 the rollout does not wait for labels, although people give them; for a rule, which is right by definition,
    # it waits only if it is asked to.
    is_unlabelled = entry.label_share == 0 or (is_rule and entry.label_share is None)
    label_share = None if is_unlabelled else evaluation.label_share
    # Calibration on older answers says little of what the judge makes of this target's style.
    is_sure = is_rule or (is_calibrated and label_share is not None)
    action = entry.action or (Action.ROLL_BACK if is_sure else Action.HOLD)
    if action is Action.ROLL_BACK and not (is_rule or is_calibrated) and label_share is None:
        # Nobody knows whether its scores say anything of the answers.
        action = Action.HOLD
    return RolloutEvaluator(
        evaluator_id=known.evaluator_id,
        version_id=known.version_id,
        version=known.number,
        title=known.title,
        kind=known.definition.kind,
        action=action,
        margin=entry.margin,
        required=entry.required,
        label_share=label_share,
        margin_scale=scale,
        calibration=calibration,
    )


def _error(number: int, field: str, problem: str) -> InvalidRolloutError:
    return InvalidRolloutError(f"quality.{number}.{field}", problem)
