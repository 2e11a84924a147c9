from __future__ import annotations

from typing import Any

from analytics.models import Dataset
from gateway.experiments.candidates import NewCandidate, resolved, stored_form
from gateway.models import Experiment
from gateway.tables.experiment import ExperimentState
from prompts.models import PromptVersion


def make_verdict(
    dataset: Dataset,
    before: PromptVersion,
    after: PromptVersion,
    verdict: str = "passed",
    *,
    settings: tuple[dict[str, Any], dict[str, Any]] = ({}, {}),
    **values: Any,
) -> Experiment:
    """Stores an experiment over the data set's present version, with this verdict on `after`. `settings` are those of
    the two candidates."""
    versions = (before, after)
    given = [NewCandidate(version_id=one.pk, **own) for one, own in zip(versions, settings, strict=True)]
    fields = {
        "name": "nightly",
        "state": ExperimentState.COMPLETED,
        "item_limit": 400,
        "baseline": "A",
        "dataset_version": dataset.version,
        "verdict": verdict,
        "verdicts": {"B": verdict} if verdict else {},
        **values,
    }
    return Experiment.objects.create(
        project=dataset.project,
        dataset_id=dataset.pk,
        dataset_name=dataset.name,
        candidates=stored_form(resolved(dataset.project_id, given)),
        **fields,
    )
