"""Finds answers and scores of earlier experiments by their keys, so that they are not paid for again. Equal keys mean
equal questions."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any
from uuid import UUID

from django.db.models import Q, QuerySet

from analytics.identifiers import id_hash
from core.chunks import chunks
from gateway.experiments.candidates import Candidate
from gateway.models import Experiment, ExperimentAnswer, ExperimentItem, ExperimentScore
from gateway.tables.experiment import AnswerState


def answer_key(project_id: UUID, candidate: Candidate, item: ExperimentItem, input_hash: str, repeat: int) -> str:
    if candidate.application:
        return _key(str(project_id), "application", candidate.application, input_hash, repeat)
    asked = [candidate.model, candidate.temperature, candidate.max_tokens, input_hash, repeat]
    return _key(str(project_id), *_prompt(candidate, item), *asked)


def score_key(
    answer: ExperimentAnswer, version_id: str, expected: Any, baseline: ExperimentAnswer | None = None
) -> str:
    """The key of an evaluator's score of an answer, or of a target's answer compared with the baseline's; empty without
    an answer key.

    The request is a part of it: an answer that was made again, with the same key, has other scores.
    """
    other = (baseline.key, _made_by(baseline)) if baseline is not None else ()
    return _key(answer.key, _made_by(answer), version_id, expected, *other) if answer.key else ""


def _made_by(answer: ExperimentAnswer) -> Any:
    # An application may name no request, or one for several answers.
    return answer.request_id if answer.provider else [answer.request_id, answer.answer]


def gets_variables(candidate: Candidate, item: ExperimentItem) -> bool:
    """Whether the item's variables are for the candidate's prompt: they were sent to it, or their data-set item names
    no prompt."""
    if item.prompt_config_id is None and item.dataset_item_id is not None:
        return True
    return candidate.prompt_config_id in ("", str(item.prompt_config_id))


def _prompt(candidate: Candidate, item: ExperimentItem) -> list[Any]:
    if candidate.version_id:
        return [candidate.version_id, gets_variables(candidate, item)]
    return [str(item.prompt_config_id or ""), item.prompt_version]


def _key(*parts: Any) -> str:
    return id_hash(json.dumps(parts, sort_keys=True, ensure_ascii=False))


APPLICATION_FAILED = "application_failed"
COPIED = (
    "request_id", "provider", "model", "prompt_version", "answer", "finish_reason", "cost_usd", "latency_ms",
    "prompt_tokens", "completion_tokens", "warning", "score", "grades", "judge_error", "error_code", "error_message",
    "failure",
)  # fmt: skip


def kept_answers(keys: Iterable[str], *, graded: bool) -> dict[str, ExperimentAnswer]:
    found = _kept().filter(key__in=[key for key in keys if key])
    if graded:
        found = found.filter(score__isnull=False)
    # Of several answers with one key it is always the first one, since scores are kept with their answer.
    return {answer.key: answer for answer in found.order_by("-pk")}


def copy_answer(kept: ExperimentAnswer, answer: ExperimentAnswer) -> None:
    for name in COPIED:
        setattr(answer, name, getattr(kept, name))
    answer.reused = True


def reuse_answers(experiment: Experiment) -> None:
    unmade = (AnswerState.AWAITED, AnswerState.PENDING)
    waiting = (
        ExperimentAnswer.objects.filter(item__experiment=experiment, state__in=unmade).exclude(key="").order_by("pk")
    )
    state = AnswerState.ANSWERED if experiment.evaluators else AnswerState.DONE
    for some in chunks(list(waiting)):
        kept = kept_answers([row.key for row in some], graded=experiment.judge)
        taken = [row for row in some if row.key in kept]
        for row in taken:
            copy_answer(kept[row.key], row)
            row.state = state
        ExperimentAnswer.objects.bulk_update(taken, [*COPIED, "reused", "state"], batch_size=100)


def kept_score(key: str) -> ExperimentScore | None:
    return ExperimentScore.objects.filter(key=key, value__isnull=False).order_by("pk").first() if key else None


def count_kept(keys: Iterable[str]) -> int:
    wanted: Sequence[str] = [key for key in keys if key]
    return sum(_kept().filter(key__in=some).order_by().values("key").distinct().count() for some in chunks(wanted))


def _kept() -> QuerySet[ExperimentAnswer]:
    states = (AnswerState.ANSWERED, AnswerState.SCORING, AnswerState.DONE)
    # That a version of an application failed is an answer of it, too.
    usable = Q(error_code="", answer__isnull=False) | Q(error_code=APPLICATION_FAILED)
    return ExperimentAnswer.objects.filter(usable, state__in=states).exclude(key="")
