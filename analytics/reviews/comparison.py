from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from analytics.agreement import Estimate, cohens_kappa, equal_share, mean_difference, pearson
from analytics.models import EvaluatorType, Score
from analytics.models.reviews import FIRST_OPINION, SECOND_OPINION, ItemState, ReviewItem, ReviewQueue, RubricKind
from core.chunks import chunks

Verdicts = Mapping[str, tuple[float, str]]

MIN_SECOND_OPINIONS = 15
MIN_KAPPA = 0.2
"""The lower limit of kappa from which on two people agree beyond chance."""

_GOOD_FROM = 0.5


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


def people_agree(project_id: UUID, evaluator_id: UUID) -> bool:
    """Returns whether the second opinions on an evaluator's due labels agree with the first ones beyond chance."""
    items = ReviewItem.objects.filter(
        queue__project_id=project_id, queue__evaluator_id=evaluator_id, queue__due_labels=True, state=ItemState.DONE
    )
    twice = items.filter(request_id__in=items.filter(opinion=SECOND_OPINION).values("request_id"))
    by_score = {item.score_id: item for item in twice.filter(score_id__isnull=False).select_related("queue")}
    found: dict[UUID, dict[int, bool]] = {}
    for score in _scores(project_id, list(by_score), by="pk"):
        item = by_score[score.pk]
        found.setdefault(item.request_id, {})[item.opinion] = item.queue.scaled(score.score_value) >= _GOOD_FROM
    both = [(one[FIRST_OPINION], one[SECOND_OPINION]) for one in found.values() if len(one) > 1]
    kappa = cohens_kappa(both) if len(both) >= MIN_SECOND_OPINIONS else None
    return kappa is not None and kappa.low is not None and kappa.low >= MIN_KAPPA


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
