"""Answers that an application makes itself and sends."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.db import transaction

from core.resources.rows import get_or_raise
from core.wire.storable import storable
from gateway.experiments import queue
from gateway.experiments.candidates import candidates_of
from gateway.experiments.errors import (
    AnswerGivenError,
    ExperimentEndedError,
    ExperimentItemNotFoundError,
    ExperimentNotFoundError,
    NotOfApplicationError,
)
from gateway.experiments.reuse import APPLICATION_FAILED
from gateway.models import Experiment, ExperimentAnswer
from gateway.selectors import project_settings
from gateway.tables.experiment import GIVEN_FIELDS, LABELS, UNFINISHED, AnswerFailure, AnswerState


def give_answer(*, project_id: UUID, experiment_id: UUID, position: int, given: Mapping[str, Any]) -> None:
    """Stores the answer once; the same answer may be sent again. `given` has the fields of `GivenAnswerSerializer`.

    Raises ExperimentNotFoundError, ExperimentItemNotFoundError, NotOfApplicationError, ExperimentEndedError and
    AnswerGivenError.
    """
    values = _columns(given, with_texts=project_settings(project_id).log_content)
    with transaction.atomic():
        experiments = Experiment.objects.for_project(project_id)
        experiment = get_or_raise(experiments, ExperimentNotFoundError, pk=experiment_id)
        answers = ExperimentAnswer.objects.select_for_update(of=("self",)).select_related("item")
        place = {"item__position": position, "candidate": LABELS.index(given["label"]), "repeat": given["repeat"]}
        answer = get_or_raise(answers.filter(item__experiment=experiment), ExperimentItemNotFoundError, **place)
        if not candidates_of(experiment.candidates)[answer.candidate].application:
            raise NotOfApplicationError
        # Its end locks the answers too, and may have come since the first look.
        experiment.refresh_from_db(fields=["state"])
        if answer.state == AnswerState.AWAITED and experiment.state in UNFINISHED:
            values["state"] = AnswerState.ANSWERED if experiment.evaluators else AnswerState.DONE
            ExperimentAnswer.objects.filter(pk=answer.pk).update(**values)
            queue.wake(experiment_id)
        elif any(getattr(answer, name) != value for name, value in values.items()):
            raise ExperimentEndedError if experiment.state not in UNFINISHED else AnswerGivenError


def _columns(given: Mapping[str, Any], *, with_texts: bool) -> dict[str, Any]:
    values: dict[str, Any] = {name: value for name, value in given.items() if name in GIVEN_FIELDS}
    if given.get("error"):
        error = {"error_code": APPLICATION_FAILED, "error_message": storable(given["error"])}
        return {**values, **error, "failure": AnswerFailure.REFUSED}
    message = {"role": "assistant", "content": given.get("content")}
    if given.get("tool_calls"):
        message["tool_calls"] = given["tool_calls"]
    return {**values, "answer": storable(message) if with_texts else None}
