"""Deletes the texts of items whose request, session or data-set item is deleted, or whose retention is over.
Measurements stay: scores, costs, tokens, times, the report and the verdict.

Each look for late records repeats a deletion, so each step must be idempotent. Answers are locked first, as by the code
that stores answers and scores, so that no text comes back.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q

from analytics.datasets.signals import GoneItems, Reason
from analytics.deletion.signals import Erased, Quotes
from analytics.identifiers import arrival_of, gateway_id, id_hash
from core.chunks import chunks
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem, ExperimentScore
from gateway.tables.experiment import AnswerFailure, AnswerState, Gone

logger = logging.getLogger("gateway.experiments")

_ITEMS_AT_ONCE = 50
_UNUSABLE = "unusable_item"
_MESSAGE = "The texts of the item are deleted."


def items_are_gone(*, gone: GoneItems, **_: object) -> None:
    reason = Gone.ERASED if gone.reason is Reason.ERASED else Gone.EXPIRED
    for ids in chunks(list(gone.item_ids)):
        _forget(gone.project_id, Q(dataset_item_id__in=ids), reason)


def subject_is_erased(*, erased: Erased, **_: object) -> Quotes | None:
    """Deletes the erased texts; returns the requests of experiments and judges that quote them."""
    found = _forget(erased.project_id, _of(erased), Gone.ERASED)
    if erased.session_hash and found is not None:
        _forget_filters(erased.project_id, "session_id", erased.session_hash)
    if erased.user_hash:
        _forget_filters(erased.project_id, "user_id", erased.user_hash)
    return found


def subject_is_kept(*, erased: Erased, **_: object) -> bool:
    return ExperimentItem.objects.filter(_of(erased), experiment__project_id=erased.project_id, gone="").exists()


def expire_items(project_id: UUID, moment: datetime) -> int:
    """Deletes the texts of past requests made before `moment`, but not of data-set items; returns their number."""
    old = Q(dataset_item_id=None, requested_at__lt=moment, gone="")
    count = ExperimentItem.objects.filter(old, experiment__project_id=project_id).count()
    if count:
        _forget(project_id, old, Gone.EXPIRED)
    return count


def _of(erased: Erased) -> Q:
    found = Q(pk__in=())
    if erased.request_hashes:
        found |= Q(request_hash__in=erased.request_hashes)
    if erased.item_ids:
        found |= Q(dataset_item_id__in=erased.item_ids)
    if erased.session_hash:
        before = Q(requested_at__lte=erased.until) | Q(requested_at=None, experiment__created_at__lte=erased.until)
        found |= Q(session_hash=erased.session_hash) & before
    return found


def _forget(project_id: UUID, found: Q, reason: Gone) -> Quotes | None:
    items = ExperimentItem.objects.filter(found, experiment__project_id=project_id).order_by("pk")
    ids = list(items.values_list("pk", flat=True))
    references: set[str] = set()
    for some in chunks(ids, _ITEMS_AT_ONCE):
        with transaction.atomic():
            references |= _forget_some(project_id, some, reason)
    return Quotes(references, _earliest(ids[0], references)) if ids else None


def _earliest(item_id: int, references: Iterable[str]) -> datetime:
    """When the first of these requests was made, by its id, else when the item's experiment was. A reused answer is
    older than its experiment."""
    gateway_ids = filter(None, map(gateway_id, references))
    times = [made for made in map(arrival_of, gateway_ids) if made is not None]
    return min([ExperimentItem.objects.select_related("experiment").get(pk=item_id).experiment.created_at, *times])


def _forget_some(project_id: UUID, ids: Sequence[int], reason: Gone) -> set[str]:
    """Deletes the texts of items, and of copies of their answers. Returns the ids of requests that quote them, and by
    which these name them."""
    named = ("pk", "key", "request_id")
    answers = list(ExperimentAnswer.objects.select_for_update().filter(item_id__in=ids).order_by("pk").only(*named))
    keys = {answer.key for answer in answers if answer.key} if reason is Gone.ERASED else set()
    copies = _copies(project_id, keys, ids)
    references = {answer.request_id for answer in (*answers, *copies) if answer.request_id}
    references |= _forget_items(ids, reason)
    _end_open(ids)
    for some in (answers, copies):
        references |= _forget_texts([answer.pk for answer in some])
    return references


def _forget_items(ids: Sequence[int], reason: Gone) -> set[str]:
    items = ExperimentItem.objects.filter(pk__in=ids)
    named = items.values_list("request_id", "dataset_item_id")
    references = {str(one) for row in named for one in row if one is not None}
    for experiment_id in set(items.order_by().values_list("experiment_id", flat=True)):
        fresh = items.filter(experiment_id=experiment_id, gone="").update(gone=reason)
        if fresh:
            counter = "erased_items" if reason is Gone.ERASED else "expired_items"
            Experiment.objects.filter(pk=experiment_id).update(**{counter: F(counter) + fresh})
            logger.info("experiment.items_gone experiment_id=%s items=%d reason=%s", experiment_id, fresh, reason)
    if reason is Gone.ERASED:
        items.filter(gone=Gone.EXPIRED).update(gone=reason)
    items.update(preview="", tags=[], request_id=None)
    return references


def _end_open(ids: Sequence[int]) -> None:
    unanswered = (AnswerState.AWAITED, AnswerState.PENDING, AnswerState.RUNNING)
    waiting = ExperimentAnswer.objects.filter(item_id__in=ids, state__in=unanswered)
    unusable = {"error_code": _UNUSABLE, "error_message": _MESSAGE, "failure": AnswerFailure.UNUSABLE}
    without = Experiment.objects.filter(evaluators=[]).values("pk")
    waiting.filter(item__experiment__in=without).update(state=AnswerState.DONE, **unusable)
    # Their scores are named by the worker, which looks at the verdict then.
    waiting.update(state=AnswerState.ANSWERED, **unusable)


def _copies(project_id: UUID, keys: Collection[str], ids: Sequence[int]) -> list[ExperimentAnswer]:
    """The answers of other items that were copied from these; resets those whose scores are still due."""
    copies = ExperimentAnswer.objects.filter(
        key__in=keys, reused=True, item__experiment__project_id=project_id
    ).exclude(item_id__in=ids)
    found = list(copies.select_for_update(of=("self",)).order_by("pk").only("pk", "key", "request_id", "state"))
    due = [answer.pk for answer in found if answer.state in (AnswerState.ANSWERED, AnswerState.SCORING)]
    if due:
        ExperimentScore.objects.filter(answer__in=due).delete()
        again = {"state": AnswerState.PENDING, "reused": False, "score": None, "grades": None}
        ExperimentAnswer.objects.filter(pk__in=due).update(**again, answer=None, warning="", judge_error="")
    return found


def _forget_texts(ids: Sequence[int]) -> set[str]:
    references: set[str] = set()
    for some in chunks(ids):
        scores = ExperimentScore.objects.filter(answer_id__in=some)
        references.update(*scores.values_list("request_ids", flat=True))
        scores.update(detail="", key="")
        # A rule's or a judge's words about an answer; why there is no score, or no answer, is no text of it.
        scores.filter(value__isnull=False, answer__error_code="").update(reason="")
        answers = ExperimentAnswer.objects.filter(pk__in=some)
        _forget_reasons(answers.filter(grades__isnull=False))
        answers.exclude(error_code__in=("", _UNUSABLE)).update(error_message="")
        answers.filter(state__in=(AnswerState.DONE, AnswerState.CANCELLED)).update(key="")
        answers.update(answer=None, warning="", judge_error="")
    return references


def _forget_reasons(answers: Iterable[ExperimentAnswer]) -> None:
    for answer in answers:
        kept = {name: {**grade, "reason": ""} for name, grade in (answer.grades or {}).items()}
        ExperimentAnswer.objects.filter(pk=answer.pk).update(grades=kept)


def _forget_filters(project_id: UUID, field: str, hashed: str) -> None:
    for experiment in Experiment.objects.for_project(project_id).filter(filter__has_key=field).only("pk", "filter"):
        if id_hash(str(experiment.filter[field])) == hashed:
            kept = {name: value for name, value in experiment.filter.items() if name != field}
            Experiment.objects.filter(pk=experiment.pk).update(filter=kept)
