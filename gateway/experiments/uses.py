"""Finds the experiments that used a data set or an evaluator."""

from __future__ import annotations

from uuid import UUID

from django.db.models import QuerySet, TextField
from django.db.models.functions import Cast

from gateway.models import Experiment


def experiments_with(
    project_id: UUID, *, dataset_id: UUID | None = None, evaluator_id: UUID | None = None
) -> QuerySet[Experiment]:
    """Returns the experiments with this data set, or with any version of this evaluator, the newest first. Reports,
    which may be large, are not read."""
    found = Experiment.objects.for_project(project_id).order_by("-created_at", "-id").defer("report")
    if dataset_id is not None:
        found = found.filter(dataset_id=dataset_id)
    if evaluator_id is not None:
        # An id occurs in no other text, and SQLite cannot ask what a list of JSON contains.
        found = found.annotate(evaluators_text=Cast("evaluators", TextField()))
        found = found.filter(evaluators_text__contains=str(evaluator_id))
    return found
