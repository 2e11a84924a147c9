from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from analytics.agreement import Estimate, cohens_kappa, equal_share, mean_difference, pearson
from analytics.models import EvaluatorType, Score
from analytics.models.reviews import FIRST_OPINION, SECOND_OPINION, ItemState, ReviewQueue, RubricKind
from core.chunks import chunks

Verdicts = Mapping[str, tuple[float, str]]


@dataclass(frozen=True, slots=True)
class Agreement:
    """The reviewers' agreement with one type of evaluator on `compared` requests.

    `kappa` is for booleans and categories, `correlation` and `mean_difference` are for numbers.
    """

    evaluator_type: str
    compared: int
    equal: Estimate | None
    kappa: Estimate | None
    correlation: Estimate | None
    mean_difference: float | None


def agreement_of_people(queue: ReviewQueue) -> Agreement | None:
    done = queue.items.filter(state=ItemState.DONE, score_id__isnull=False).order_by()
    twice = done.filter(request_id__in=done.filter(opinion=SECOND_OPINION).values("request_id"))
    opinions = dict(twice.values_list("score_id", "opinion"))
    verdicts: dict[int, dict[str, tuple[float, str]]] = {FIRST_OPINION: {}, SECOND_OPINION: {}}
    for score in _scores(queue.project_id, list(opinions), by="pk"):
        verdicts[opinions[score.pk]][score.request_id] = (score.score_value, score.score_label)
    first, second = verdicts[FIRST_OPINION], verdicts[SECOND_OPINION]
    both = {key: verdict for key, verdict in second.items() if key in first}
    return _agreement(queue, EvaluatorType.HUMAN, first, both) if both else None


def agreements(queue: ReviewQueue) -> list[Agreement]:
    reviewed = queue.items.filter(state=ItemState.DONE, score_id__isnull=False, opinion=FIRST_OPINION).order_by()
    own: dict[str, tuple[float, str]] = {}
    others: dict[str, dict[str, tuple[float, str]]] = {}
    for score in _scores(queue.project_id, list(reviewed.values_list("score_id", flat=True)), by="pk"):
        own[score.request_id] = (score.score_value, score.score_label)
    # The latest score of each request counts: later ones replace it here, because the oldest come first.
    for score in _scores(queue.project_id, list(own), by="request_id"):
        if _is_compared(queue, score):
            given = others.setdefault(score.evaluator_type, {})
            given[score.request_id] = (score.score_value, score.score_label)
    return [_agreement(queue, evaluator, own, given) for evaluator, given in sorted(others.items())]


def _scores(project_id: UUID, keys: Sequence[UUID | str | None], *, by: str) -> Iterator[Score]:
    for some in chunks(keys):
        yield from Score.objects.for_project(project_id).filter(**{f"{by}__in": some}).order_by("created_at", "id")


def _is_compared(queue: ReviewQueue, score: Score) -> bool:
    named = queue.compared_score_name or queue.score_name
    return (score.score_name, score.score_type) == (named, queue.kind) and score.evaluator_type != EvaluatorType.HUMAN


def _agreement(queue: ReviewQueue, evaluator: str, own: Verdicts, given: Verdicts) -> Agreement:
    both = [(own[request_id], verdict) for request_id, verdict in sorted(given.items())]
    values = [(first[0], second[0]) for first, second in both]
    if queue.kind == RubricKind.NUMBER:
        return Agreement(evaluator, len(both), equal_share(values), None, pearson(values), mean_difference(values))
    verdicts = [(_named(first), _named(second)) for first, second in both]
    return Agreement(evaluator, len(both), equal_share(verdicts), cohens_kappa(verdicts), None, None)


def _named(verdict: tuple[float, str]) -> str:
    """The value of a labelled category is only its place in the rater's rubric, so the label counts."""
    value, label = verdict
    return label or f"{value:g}"
