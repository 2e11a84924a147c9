"""What the judges of an experiment will cost, by what its items were when they were requests."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from uuid import UUID

from analytics.evaluators.definitions import Definition, Judge, Pairwise, Similarity
from core.chunks import chunks
from gateway.judging.form import candidates_for, may_think
from gateway.judging.rubric import CRITERIA
from gateway.models import ExperimentScore
from gateway.snapshot.project import ProjectSnapshot

_MILLION = Decimal(1_000_000)
# Tokens of the instructions, of a grade with its reason, and of the thoughts of a model that has any.
_INSTRUCTIONS, _GRADE, _THOUGHTS = 400, 60, 500


@dataclass(frozen=True, slots=True)
class Judging:
    """What one evaluator has to score: so many answers of items whose requests had so many tokens on average."""

    title: str
    definition: Definition
    answers: int
    mean_tokens: int


def judged_by(snapshot: ProjectSnapshot, judging: Judging) -> str:
    """Returns the judge's model, empty where none is named."""
    definition = judging.definition
    own = definition.model if isinstance(definition, Judge | Pairwise | Similarity) else ""
    return own or snapshot.settings.judge_model


def project_judge(answers: int, mean_tokens: int) -> Judging:
    """Returns what the project's judge has to grade."""
    return Judging("judge_model", Judge(criteria=[]), answers, mean_tokens)


def count_scored(keys: Iterable[str], version_id: UUID | str) -> int:
    """Returns of how many of the answers with these keys a score by the version of an evaluator is there."""
    wanted: Sequence[str] = [key for key in keys if key]
    found: set[str] = set()
    for some in chunks(wanted):
        rows = ExperimentScore.objects.filter(answer__key__in=some, value__isnull=False)
        scores = rows.values_list("answer__key", "evaluator", "answer__item__experiment__evaluators")
        found |= {key for key, place, used in scores if used[place]["version_id"] == str(version_id)}
    return len(found)


def judge_cost(snapshot: ProjectSnapshot, judging: Judging) -> Decimal | None:
    """Returns what the scores will cost; None where the price of the judge's model is not known."""
    model = judged_by(snapshot, judging)
    if not judging.answers or not model:
        return Decimal(0)
    candidate = next(candidates_for(snapshot, model), None)
    price = None if candidate is None else snapshot.price_of(candidate.provider, candidate.upstream_model)
    if price is None:
        return None
    prompt, completion = _tokens(snapshot, model, judging)
    return (price.input * prompt + price.output * completion) * judging.answers / _MILLION


def _tokens(snapshot: ProjectSnapshot, model: str, judging: Judging) -> tuple[int, int]:
    """Returns the tokens that the scores of one answer take."""
    definition = judging.definition
    if isinstance(definition, Similarity):
        return judging.mean_tokens, 0
    prompt = _INSTRUCTIONS + judging.mean_tokens
    thoughts = _THOUGHTS if any(map(may_think, candidates_for(snapshot, model))) else 0
    if isinstance(definition, Pairwise):
        # Two answers are compared in both orders.
        return 2 * prompt, 2 * (_GRADE + thoughts)
    count = len(definition.criteria) if isinstance(definition, Judge) and definition.criteria else len(CRITERIA)
    return prompt, count * _GRADE + thoughts
