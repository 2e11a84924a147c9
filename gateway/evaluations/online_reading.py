from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from uuid import UUID

from analytics.errors import AnalyticsLimitError, AnalyticsUnavailableError
from analytics.evaluators.definitions import UserFeedback
from analytics.models import SCORE_NAME_CHARACTERS, EvaluationTask, Score
from analytics.models.online_evaluations import SkipReason, TaskState
from analytics.online_evaluations import queue
from analytics.online_evaluations.queue import Batch, End
from analytics.online_evaluations.ratings import RatedAnswer, rated_bad
from analytics.online_evaluations.reading import AnswerFacts, answer_facts
from analytics.queries.bodies import get_payloads
from analytics.queries.request_cursor import RequestCursor
from analytics.queries.requests import Payload
from gateway.evaluations.rules import Answer, Evaluation
from gateway.evaluations.stored import read_stored
from gateway.guardrails.verdicts import VERDICTS, is_masked

logger = logging.getLogger("gateway.evaluations")

NAME_TOO_LONG = "name_too_long"
"""The reason of a task whose evaluator has got a name that, with the version, no score can have."""


def read_batch(batch: Batch, *, keeps_texts: bool) -> Mapping[int, Answer | End]:
    """Returns the answers of a batch by task, or how a task ends without asking anybody. Those that cannot be read at
    the moment are left out."""
    known = queue.known_scores(batch.tasks)
    found: dict[int, Answer | End] = {task.pk: _known(task, known[task.pk]) for task in batch.tasks if task.pk in known}
    # Two evaluations may have one answer due for the same version: the second waits for the score of the first.
    first = {queue.score_id_of(task): task for task in reversed(batch.tasks)}
    left = [task for task in first.values() if task.pk not in known]
    rated = [task for task in left if isinstance(queue.version_of(task).definition, UserFeedback)]
    read = [task for task in left if task not in rated]
    try:
        facts = answer_facts(batch.project_id, _keys(left), VERDICTS)
        bodies = get_payloads(batch.project_id, _keys(read))
    except (AnalyticsUnavailableError, AnalyticsLimitError) as error:
        logger.warning("evaluations.postponed project_id=%s error=%s", batch.project_id, type(error).__name__)
        return found
    for task in read:
        found[task.pk] = _read(task, facts.get(task.request_id), bodies.get(task.request_id), keeps_texts=keeps_texts)
    found.update({end.task.pk: end for end in _rated(batch.project_id, rated, facts)})
    return found


def _keys(tasks: Sequence[EvaluationTask]) -> list[RequestCursor]:
    return [RequestCursor(task.requested_at, task.request_id) for task in tasks]


def _known(task: EvaluationTask, score: Score) -> End:
    return End(
        task, TaskState.DONE, score=score.score_value, text=score.reason, judge_model=score.judge_model, is_known=True
    )


def _rated(project_id: UUID, tasks: Sequence[EvaluationTask], facts: Mapping[UUID, AnswerFacts]) -> Iterator[End]:
    """Scores answers by users' feedback. An answer that nobody rated bad scores 1, so no score is missing."""
    answers = [
        RatedAnswer(task.request_id, facts[task.request_id].session_id, task.requested_at)
        for task in tasks
        if task.request_id in facts
    ]
    bad = rated_bad(project_id, answers) if answers else set()
    for task in tasks:
        if _is_name_too_long(task):
            yield End(task, TaskState.FAILED, NAME_TOO_LONG)
        elif task.request_id not in facts:
            yield End(task, TaskState.SKIPPED, SkipReason.NO_TEXT)
        else:
            yield End(task, TaskState.DONE, score=0.0 if task.request_id in bad else 1.0)


def _read(
    task: EvaluationTask, facts: AnswerFacts | None, bodies: Payload | None, *, keeps_texts: bool
) -> Answer | End:
    asks_a_model = queue.version_of(task).definition.asks_a_model
    if _is_name_too_long(task):
        return End(task, TaskState.FAILED, NAME_TOO_LONG)
    if facts is None or bodies is None or (asks_a_model and not keeps_texts):
        return End(task, TaskState.SKIPPED, SkipReason.NO_TEXT)
    if asks_a_model and is_masked(facts.verdicts):
        return End(task, TaskState.SKIPPED, SkipReason.MASKED)
    found = read_stored(
        bodies.request, bodies.response, finish_reason=facts.finish_reason, completion_tokens=facts.completion_tokens
    )
    if isinstance(found, Evaluation):
        return End(task, TaskState.FAILED, found.reason)
    return found


def _is_name_too_long(task: EvaluationTask) -> bool:
    return len(queue.version_of(task).title) > SCORE_NAME_CHARACTERS
