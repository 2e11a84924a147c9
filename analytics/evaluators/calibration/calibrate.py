from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.utils import timezone

from analytics.evaluators.calibration.labels import Judged, is_good, labels_of, latest_model, verdicts_of
from analytics.evaluators.calibration.states import Facts, Standing, standing_of
from analytics.evaluators.calibration.statistics import (
    Confusion,
    DifferentialBias,
    Group,
    confusion_by_group,
    confusion_of,
    differential_bias,
    flip_evidence,
)
from analytics.evaluators.selectors import KnownVersion, get_version
from integrations.registry import prefix_of


def family_of(model: str) -> str:
    """Returns the model's maker as in the model registry; "" for an unknown model.

    A name may begin with a provider (`azure_openai/gpt-4o`), or a region and a vendor (`us.anthropic.claude-…`).
    """
    name = model.rpartition("/")[2]
    parts = name.split(".")
    found = [prefix_of(".".join(parts[start:])) for start in range(len(parts))]
    # What stands before a name says who serves it.
    return next((prefix.owned_by for prefix in reversed(found) if prefix is not None), "")


def shared_families(judge_models: Iterable[str], models: Iterable[str]) -> list[str]:
    return sorted({family_of(one) for one in judge_models} & {family_of(one) for one in models} - {""})


@dataclass(frozen=True, slots=True)
class Flips:
    judged_again: int
    to_good: int
    to_bad: int

    @property
    def evidence(self) -> float:
        return flip_evidence(to_good=self.to_good, to_bad=self.to_bad)


@dataclass(frozen=True, slots=True)
class Calibration:
    """`labelled` counts the answers with a label; `facts` compare those that the version judged, too.

    `shared_families` are those with a model that judged and a model that answered.
    """

    version: KnownVersion
    labelled: int
    facts: Facts
    standing: Standing
    by_version: Mapping[Group, Confusion]
    by_arm: Mapping[Group, Confusion]
    between_versions: DifferentialBias | None
    between_arms: DifferentialBias | None
    flips: Flips
    shared_families: Sequence[str]


def calibrate(project_id: UUID, evaluator_id: UUID, number: int | None = None) -> Calibration:
    """Without a number the newest version counts.

    Raises EvaluatorNotFoundError, EvaluatorVersionNotFoundError and the errors of the store.
    """
    version = get_version(project_id, evaluator_id, number)
    labels = labels_of(project_id, version)
    found = verdicts_of(project_id, version, labels)
    verdicts = [one for _, _, one in found]
    by_version = confusion_by_group((one.version, one) for one in verdicts)
    by_arm = confusion_by_group((one.arm, one) for one in verdicts)
    between_versions, between_arms = differential_bias(by_version), differential_bias(by_arm)
    flips = _flips(version, [judged for _, judged, _ in found])
    models = {judged.latest.judge_model for _, judged, _ in found} | {latest_model(project_id, version)}
    facts = Facts(
        confusion=confusion_of(verdicts),
        differences=[one for one in (between_versions, between_arms) if one is not None],
        labelled_at=max((label.labelled_at for label, _, _ in found), default=None),
        models=sorted(models - {""}),
        drift=flips.evidence,
    )
    return Calibration(
        version=version,
        labelled=len(labels),
        facts=facts,
        standing=standing_of(facts, timezone.now()),
        by_version=by_version,
        by_arm=by_arm,
        between_versions=between_versions,
        between_arms=between_arms,
        flips=flips,
        shared_families=shared_families(facts.models, {one.model for one in verdicts}),
    )


def _flips(version: KnownVersion, judged: Sequence[Judged]) -> Flips:
    pairs = [(is_good(version, one.first), is_good(version, one.latest)) for one in judged if one.first != one.latest]
    return Flips(len(pairs), to_good=pairs.count((False, True)), to_bad=pairs.count((True, False)))
