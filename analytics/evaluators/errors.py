"""Failures of evaluators.

ApplicationError
├── NotFoundError
│   ├── EvaluatorNotFoundError          the project has no evaluator of this id
│   └── EvaluatorVersionNotFoundError   the evaluator has no version of this number
└── ConflictError
    ├── EvaluatorExistsError            the project has an evaluator of this name
    └── TooManyEvaluatorsError          there are as many evaluators, or versions of one, as there may be
"""

from __future__ import annotations

from core.errors import ConflictError, NotFoundError


class EvaluatorNotFoundError(NotFoundError):
    code = "evaluator_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such evaluator in this project.")


class EvaluatorVersionNotFoundError(NotFoundError):
    code = "evaluator_version_not_found"

    def __init__(self) -> None:
        super().__init__("The evaluator has no such version.")


class EvaluatorExistsError(ConflictError):
    code = "evaluator_exists"

    def __init__(self) -> None:
        problem = "There is an evaluator of this name."
        super().__init__(f"name: {problem}", details={"name": [problem]})


class TooManyEvaluatorsError(ConflictError):
    code = "too_many_evaluators"

    def __init__(self, maximum: int, what: str) -> None:
        """`what` names what there are too many of."""
        super().__init__(f"There are {maximum} {what}; no more may be made.")
