from __future__ import annotations

import logging
from uuid import UUID

from django.utils import timezone

from analytics.evaluators.definitions import Pairwise
from analytics.evaluators.errors import EvaluatorNotFoundError, EvaluatorVersionNotFoundError
from analytics.evaluators.selectors import KnownVersion, get_version
from analytics.models import Evaluator
from analytics.models.evaluators import EvaluatorState
from analytics.online_evaluations.sampling import minute_of
from analytics.queries.request_samples import SampleOrder
from core.errors import ValidationError
from gateway.evaluations.judge_cost import judge_problem
from gateway.experiments import candidates, evaluators
from gateway.experiments.candidates import NewCandidate
from gateway.experiments.evaluators import NewEvaluator
from gateway.experiments.plan import DEFAULT_MARGIN
from gateway.experiments.services import end_experiment
from gateway.models import Experiment, Shadow
from gateway.tables.experiment import LABELS, NAME_CHARACTERS, UNFINISHED, ExperimentState
from prompts.models import PromptVersion
from rollouts.gate.registry import NewShadow
from rollouts.models import Rollout

MAX_PAIRS = 1_000
"""A shadow compares at most so many answers; one that is undecided then stays so."""

_EVALUATOR = "shadow.evaluator_id"

logger = logging.getLogger("gateway.shadow")


class ShadowWork:
    def begin(self, rollout: Rollout, shadow: NewShadow) -> None:
        known = _evaluator(rollout.project_id, shadow)
        _require_known_cost(rollout.project_id, known)
        experiment = _experiment(rollout, shadow, known)
        now = timezone.now()
        Shadow.objects.create(
            experiment=experiment,
            prompt_config_id=rollout.config_id,
            baseline_number=PromptVersion.objects.values_list("number", flat=True).get(pk=rollout.baseline_version_id),
            rate=shadow.rate,
            since=now,
            followed_until=minute_of(now),
        )
        logger.info("shadow.begun rollout_id=%s experiment_id=%s", rollout.pk, experiment.pk)

    def end(self, rollout: Rollout) -> None:
        """Providers' calls under way are hung up within seconds."""
        running = Experiment.objects.filter(rollout_id=rollout.pk, state__in=UNFINISHED).values_list("pk", flat=True)
        for experiment_id in list(running):
            end_experiment(experiment_id, ExperimentState.CANCELLED)
            logger.info("shadow.ended rollout_id=%s experiment_id=%s", rollout.pk, experiment_id)


def _experiment(rollout: Rollout, shadow: NewShadow, known: KnownVersion) -> Experiment:
    versions = [NewCandidate(version_id=one) for one in (rollout.baseline_version_id, rollout.target_version_id)]
    asked = NewEvaluator(shadow.evaluator_id, known.number)
    return Experiment.objects.create(
        project_id=rollout.project_id,
        rollout_id=rollout.pk,
        name=f"Shadow of {rollout.name}"[:NAME_CHARACTERS],
        created_by=rollout.created_by,
        candidates=candidates.stored_form(candidates.resolved(rollout.project_id, versions)),
        order=str(SampleOrder.RANDOM),
        item_limit=MAX_PAIRS,
        evaluators=evaluators.stored_form(evaluators.resolved(rollout.project_id, [asked])),
        baseline=LABELS[0],
        margin=DEFAULT_MARGIN,
        reuse=False,
        max_cost_usd=shadow.budget_usd,
    )


def _evaluator(project_id: UUID, shadow: NewShadow) -> KnownVersion:
    try:
        known = get_version(project_id, shadow.evaluator_id, shadow.version)
    except EvaluatorNotFoundError:
        raise ValidationError.of_field(_EVALUATOR, "The project has no such evaluator.") from None
    except EvaluatorVersionNotFoundError:
        raise ValidationError.of_field("shadow.version", "The evaluator has no such version.") from None
    if not isinstance(known.definition, Pairwise):
        raise ValidationError.of_field(_EVALUATOR, "It has to compare two answers: its kind is `pairwise`.")
    if Evaluator.objects.filter(pk=known.evaluator_id, state=EvaluatorState.ARCHIVED).exists():
        raise ValidationError.of_field(_EVALUATOR, "The evaluator is archived.")
    return known


def _require_known_cost(project_id: UUID, known: KnownVersion) -> None:
    if problem := judge_problem(project_id, known.definition):
        raise ValidationError.of_field(_EVALUATOR, problem)
