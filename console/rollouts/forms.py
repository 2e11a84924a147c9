from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import UUID

from django import forms
from django.db.models import QuerySet
from django.forms import BaseFormSet, formset_factory

from analytics.models import SCORE_NAME_CHARACTERS, Dataset, Evaluator
from analytics.models.evaluators import EvaluatorState
from analytics.online_evaluations.matched import matched_evaluators
from prompts.models import PromptConfig, PromptVersion
from rollouts.allocation import AllocationType
from rollouts.evaluation import Action, Metric, Policy
from rollouts.evaluation.policy import RATES, usual_threshold
from rollouts.evaluation.quality.rules import GOAL_MARGIN
from rollouts.gate.registry import NewShadow
from rollouts.models import NAME_CHARACTERS, Gate, Mode
from rollouts.quality.entries import QualityEntry
from rollouts.serializers import MAX_SHADOW_USD, PolicySerializer
from rollouts.services import NewRollout
from rollouts.states import (
    DEFAULT_STAGES,
    MAX_STAGES,
    SETTLE_MINUTES,
    TEST_STAGES,
    Stage,
    StageError,
    stages_from,
)
from rollouts.verdicts.policies import COST_ALLOWANCE, MAX_COST_ALLOWANCE

if TYPE_CHECKING:
    VersionChoice = forms.ModelChoiceField[PromptVersion]
    DatasetChoice = forms.ModelChoiceField[Dataset]
    EvaluatorChoice = forms.ModelChoiceField[Evaluator]
    AnyStages = BaseFormSet["StageForm"]
else:
    VersionChoice = forms.ModelChoiceField
    DatasetChoice = forms.ModelChoiceField
    EvaluatorChoice = forms.ModelChoiceField
    AnyStages = BaseFormSet

ROWS = 12
"""The number of stages that the form has rows for."""

_FIELD_OF_STAGE = ("weight", "min_duration_minutes", "min_requests", "settle_minutes")
_MODES = [
    (Mode.AUTO.value, "Automatic: verdicts promote it, and roll it back when it fails"),
    (Mode.MANUAL.value, "By hand: verdicts are shown, and people decide"),
]
_ALLOCATIONS = [
    (AllocationType.RANDOM.value, "Each request by chance"),
    (AllocationType.USER_STICKY.value, "By user: each user stays with one version"),
    (AllocationType.SESSION_STICKY.value, "By session: each session stays with one version"),
]
_GATES = [
    (Gate.NONE.value, "Nothing: it may begin at any time"),
    (Gate.EXPERIMENT.value, "An experiment: the target passed against the baseline over a data set as it is then"),
    (Gate.SHADOW.value, "A shadow: the target answers requests of the baseline, too, and no user sees it"),
]
_SHADOW = ("shadow_evaluator", "shadow_share", "shadow_budget")
_PAIRWISE = "pairwise"
_ACTIONS = [
    (Action.ROLL_BACK.value, "Roll back"),
    (Action.HOLD.value, "Hold at this stage"),
    (Action.IGNORE.value, "Ignore"),
]
_EXACT_SIZE = "1 point and 1.25 times as many as the baseline's."
_METRICS = {
    Metric.UNANSWERED: ("More requests go unanswered", "0.5 points and 1.25 times as many as the baseline's."),
    Metric.ERROR_RATE: ("More errors", "0.5 points and 1.25 times as many as the baseline's."),
    Metric.CONTRACT: ("More answers break their schema", _EXACT_SIZE),
    Metric.TRUNCATED: ("More answers are cut off", _EXACT_SIZE),
    Metric.FALLBACK: ("More answers come from another model", _EXACT_SIZE),
    Metric.EMPTY: ("More answers are empty", _EXACT_SIZE),
    Metric.LATENCY_P95: ("The slowest 5 % get slower", "1.2 times the baseline's 95th percentile."),
    Metric.LATENCY_AVERAGE: ("Answers get slower on average", "1.1 times the baseline's average."),
    Metric.COST: ("A request gets dearer", "1.1 times what is allowed below."),
}
_THRESHOLDS = {"fail_from": "may fail from", "margin": "passes below"}
_EVALUATORS = {
    "evaluators": "Evaluators whose scores are judged",
    "required_evaluators": "Of them those that must pass from 50 % on",
}
_PERCENT = 100


# Ways through the stages for those who do not want to write their own, with what each is good for.
WAYS: Sequence[tuple[str, str, tuple[Stage, ...]]] = (
    (
        "Careful",
        "For prompts that many users see, or whose mistakes cost.",
        (
            *(Stage(weight, 120, minimum, SETTLE_MINUTES) for weight, minimum in ((1, 100), (5, 200), (10, 400))),
            *(Stage(weight, 240, 800, SETTLE_MINUTES) for weight in (25, 50, 75)),
            Stage(100, 120, 0, 0),
        ),
    ),
    ("Standard", "Finds all but small losses, at each share of the traffic.", DEFAULT_STAGES),
    (
        "Fast",
        "For small changes; a loss is found later, at more users.",
        (Stage(10, 30, 50, SETTLE_MINUTES), Stage(50, 60, 200, SETTLE_MINUTES), Stage(100, 30, 0, 0)),
    ),
)


def _threshold_field(metric: Metric, label: str, usual: float) -> forms.FloatField:
    is_rate = metric in RATES
    shown = f"{usual * _PERCENT:g} points" if is_rate else f"{usual:g} times"
    return forms.FloatField(
        required=False, label=f"{label} ({'points' if is_rate else 'times'})", help_text=f"{shown} without it."
    )


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def possible_targets(config: PromptConfig) -> QuerySet[PromptVersion]:
    versions = PromptVersion.objects.filter(config=config)
    return versions.exclude(pk=config.active_version_id or config.pk).order_by("-number")


class RolloutForm(forms.Form):
    shown_when: ClassVar[Mapping[str, tuple[str, Sequence[str]]]] = {
        "gate_dataset": ("gate", (Gate.EXPERIMENT.value,)),
        **dict.fromkeys(_SHADOW, ("gate", (Gate.SHADOW.value,))),
    }

    name = forms.CharField(
        required=False, max_length=NAME_CHARACTERS, help_text="Without one it is named after the target."
    )
    mode = forms.ChoiceField(choices=_MODES, widget=forms.RadioSelect, initial=Mode.AUTO.value, label="Who decides")
    allocation_type = forms.ChoiceField(
        choices=_ALLOCATIONS,
        widget=forms.RadioSelect,
        initial=AllocationType.RANDOM.value,
        label="Who gets the target",
    )
    gate = forms.ChoiceField(
        choices=_GATES, widget=forms.RadioSelect, initial=Gate.NONE.value, label="What has to be shown before"
    )

    shadow_share = forms.FloatField(
        required=False,
        min_value=0.001,
        max_value=_PERCENT,
        initial="10",
        label="Share of the requests (%)",
        help_text="So many requests of the baseline are answered by the target, too.",
    )
    shadow_budget = forms.DecimalField(
        required=False,
        min_value=Decimal("0.000001"),
        max_value=MAX_SHADOW_USD,
        decimal_places=6,
        label="Budget of the shadow ($)",
        help_text="What its answers and comparisons may cost together.",
    )

    outcomes = forms.CharField(
        required=False,
        label="Outcomes that must not fall",
        help_text="Names of boolean scores that your application sends, with commas between them, as resolved.",
    )
    reversed_outcomes = forms.CharField(
        required=False, label="Outcomes that must not rise", help_text="Those of which less is better, as escalated."
    )
    goal = forms.CharField(
        required=False,
        max_length=SCORE_NAME_CHARACTERS,
        label="Goal of an A/B test",
        help_text="One outcome: the test ends when the target is shown to be better, or not better by the gain below."
        " Its one stage is 50 % for at least a day unless you say otherwise.",
    )
    gain = forms.FloatField(
        required=False,
        min_value=0.1,
        max_value=99,
        initial=f"{GOAL_MARGIN * _PERCENT:g}",
        label="Smallest gain that counts (points)",
    )

    def __init__(self, config: PromptConfig, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **{"label_suffix": "", **kwargs})
        self.config = config
        self.fields["target"] = VersionChoice(possible_targets(config), label="Target", empty_label=None)
        datasets = Dataset.objects.for_project(config.project_id).order_by("name")
        self.fields["gate_dataset"] = DatasetChoice(
            datasets, required=False, label="Data set of the gate", empty_label="Any data set"
        )
        evaluators = [(str(pk), name) for pk, name in matched_evaluators(config.project_id)]
        for name, label in _EVALUATORS.items():
            self.fields[name] = forms.MultipleChoiceField(
                choices=evaluators, required=False, widget=forms.CheckboxSelectMultiple, label=label
            )
        pairwise = Evaluator.objects.for_project(config.project_id).filter(kind=_PAIRWISE, state=EvaluatorState.ACTIVE)
        self.fields["shadow_evaluator"] = EvaluatorChoice(
            pairwise.order_by("name"), required=False, label="Evaluator of the shadow", empty_label="None"
        )
        policy = Policy()
        for metric, (label, size) in _METRICS.items():
            usual = policy.action(metric).value
            self.fields[metric.value] = forms.ChoiceField(
                choices=_ACTIONS,
                initial=usual,
                label=label,
                help_text=f"{size} By default: {usual.replace('_', ' ')}.",
            )
            for name, what in _THRESHOLDS.items():
                if (own := getattr(usual_threshold(metric), name)) is not None:
                    self.fields[f"{name}_{metric.value}"] = _threshold_field(metric, f"{label}: {what}", own)
        self.fields[COST_ALLOWANCE] = forms.FloatField(
            min_value=0,
            max_value=MAX_COST_ALLOWANCE * _PERCENT,
            initial=f"{policy.cost_allowance * _PERCENT:g}",
            label="The target may cost more by (%)",
        )
        self.order_fields(["target", "name", "mode", "allocation_type"])

    def clean(self) -> None:
        gate = self.cleaned_data.get("gate")
        if self.cleaned_data.get("gate_dataset") and gate in (Gate.NONE, Gate.SHADOW):
            self.add_error("gate_dataset", "Takes an experiment as the gate.")
        if set(self.cleaned_data.get("required_evaluators", ())) - set(self.cleaned_data.get("evaluators", ())):
            self.add_error("required_evaluators", "Choose these evaluators above, too.")
        for name in ("outcomes", "reversed_outcomes"):
            if any(len(one) > SCORE_NAME_CHARACTERS for one in _names(self.cleaned_data.get(name, ""))):
                self.add_error(name, f"A name has at most {SCORE_NAME_CHARACTERS} characters.")
        for name in _SHADOW if gate == Gate.SHADOW else ():
            if self.cleaned_data.get(name) is None and name not in self.errors:
                self.add_error(name, "A shadow takes one.")

        self._check_thresholds()

    def _check_thresholds(self) -> None:
        problems = PolicySerializer(data={"thresholds": self._thresholds()})
        if problems.is_valid():
            return
        for metric, found in cast("dict[str, Any]", problems.errors.get("thresholds", {})).items():
            for name, texts in found.items():
                self.add_error(f"{name}_{metric}", [str(text) for text in texts])

    def _thresholds(self) -> dict[str, dict[str, float]]:
        given: dict[str, dict[str, float]] = {}
        for metric in _METRICS:
            for name in _THRESHOLDS:
                if (value := self.cleaned_data.get(f"{name}_{metric.value}")) is not None:
                    scale = _PERCENT if metric in RATES else 1
                    given.setdefault(metric.value, {})[name] = value / scale
        return given

    @property
    def has_thresholds(self) -> bool:
        return self.is_bound and any(field.data or field.errors for field in self.threshold_fields)

    @property
    def threshold_fields(self) -> list[forms.BoundField]:
        names = [f"{name}_{metric.value}" for metric in _METRICS for name in _THRESHOLDS]
        return [self[name] for name in names if name in self.fields]

    @property
    def metric_fields(self) -> list[forms.BoundField]:
        return [self[metric.value] for metric in _METRICS]

    def policy(self) -> dict[str, Any]:
        """Returns what differs from the defaults, of a form without errors."""
        data, defaults = self.cleaned_data, Policy()
        policy: dict[str, Any] = {
            metric.value: data[metric.value]
            for metric in _METRICS
            if data[metric.value] != defaults.action(metric).value
        }
        allowance = data[COST_ALLOWANCE] / _PERCENT
        if allowance != defaults.cost_allowance:
            policy[COST_ALLOWANCE] = allowance
        if thresholds := self._thresholds():
            policy["thresholds"] = thresholds
        return policy

    def new_rollout(self, stages: Sequence[Stage]) -> NewRollout:
        data = self.cleaned_data
        return NewRollout(
            config_id=self.config.pk,
            target_version_id=data["target"].pk,
            name=data["name"],
            mode=Mode(data["mode"]),
            allocation_type=AllocationType(data["allocation_type"]),
            stages=TEST_STAGES if data["goal"] and tuple(stages) == DEFAULT_STAGES else stages,
            policy=self.policy(),
            gate=Gate(data["gate"]),
            gate_dataset_id=data["gate_dataset"].pk if data["gate_dataset"] else None,
            quality=[
                *[QualityEntry(UUID(one), required=one in data["required_evaluators"]) for one in data["evaluators"]],
                *self._outcomes(),
            ],
            shadow=self._shadow() if data["gate"] == Gate.SHADOW else None,
        )

    def _outcomes(self) -> Iterator[QualityEntry]:
        data = self.cleaned_data
        yield from (QualityEntry(score_name=name) for name in _names(data["outcomes"]))
        yield from (QualityEntry(score_name=name, worst=1.0, best=0.0) for name in _names(data["reversed_outcomes"]))
        if data["goal"]:
            margin = GOAL_MARGIN if data["gain"] is None else data["gain"] / _PERCENT
            yield QualityEntry(score_name=data["goal"], goal=True, margin=margin)

    def _shadow(self) -> NewShadow:
        data = self.cleaned_data
        return NewShadow(data["shadow_evaluator"].pk, data["shadow_share"] / _PERCENT, data["shadow_budget"])


class StageForm(forms.Form):
    weight = forms.IntegerField(required=False, label="Share of the target (%)")
    min_duration_minutes = forms.IntegerField(required=False, label="At least minutes")
    min_requests = forms.IntegerField(required=False, label="At least answered requests of the target")
    settle_minutes = forms.IntegerField(required=False, label="Minutes to settle")

    @property
    def is_empty(self) -> bool:
        if not self.is_bound:
            return not self.initial
        return all(self.data.get(self.add_prefix(name), "") == "" for name in _FIELD_OF_STAGE)


class BaseStages(AnyStages):
    """`is_valid` sets `stages`."""

    stages: tuple[Stage, ...] = ()

    def clean(self) -> None:
        if any(self.errors):
            return
        rows = [form for form in self.forms if not form.is_empty]
        given = [{name: value for name, value in row.cleaned_data.items() if value is not None} for row in rows]
        try:
            self.stages = stages_from(given)
        except StageError as error:
            place, _, name = error.field.removeprefix("stages[").partition("].")
            if not name:
                raise forms.ValidationError(error.message) from error
            rows[int(place)].add_error(name, error.message)


_Stages: type[BaseStages] = cast(
    "type[BaseStages]", formset_factory(StageForm, formset=BaseStages, extra=0, max_num=MAX_STAGES)
)


def stage_rows(stages: Sequence[Stage] = DEFAULT_STAGES, data: Any = None) -> BaseStages:
    if data is not None:
        return _Stages(data, prefix="stages")
    initial: list[dict[str, int]] = [stage._asdict() for stage in stages]
    return _Stages(initial=initial + [{}] * max(0, ROWS - len(initial)), prefix="stages")


def address_of_stages(stages: Sequence[Stage]) -> str:
    """The reverse of `stages_of_address`."""
    return ",".join(":".join(map(str, stage)) for stage in stages)


def stages_of_address(text: str) -> tuple[Stage, ...]:
    """Parses `weight:minutes:requests:settle_minutes`, comma-separated; later parts may be left out. An empty text
    gives the default stages. Raises StageError."""
    if not text:
        return DEFAULT_STAGES
    items = [dict(zip(_FIELD_OF_STAGE, map(_number, item.split(":")), strict=False)) for item in text.split(",")]
    return stages_from([{name: value for name, value in item.items() if value is not None} for item in items])


def _number(text: str) -> int | None:
    return int(text) if text.isdecimal() and len(text) <= 10 else None
