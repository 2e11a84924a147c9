"""Whether a budget can be kept with a judge. This app does not know models and prices: the one that does registers how
to find out when it is ready."""

from __future__ import annotations

from collections.abc import Callable
from uuid import UUID

from analytics.evaluators.definitions import Definition

JudgeProblem = Callable[[UUID, Definition], str]
"""Returns why no budget can be kept with the judge of a definition, by project; empty where one can."""

_registered: list[JudgeProblem] = []


def register(problem: JudgeProblem) -> None:
    _registered[:] = [problem]


def judge_problem(project_id: UUID, definition: Definition) -> str:
    return _registered[0](project_id, definition) if _registered else ""
