"""Failures of online evaluations.

ApplicationError
├── NotFoundError
│   └── OnlineEvaluationNotFoundError   the project has no online evaluation of this id
└── ConflictError
    └── TooManyOnlineEvaluationsError   the project has as many active ones as it may
"""

from __future__ import annotations

from core.errors import ConflictError, NotFoundError


class OnlineEvaluationNotFoundError(NotFoundError):
    code = "online_evaluation_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such online evaluation in this project.")


class TooManyOnlineEvaluationsError(ConflictError):
    code = "too_many_online_evaluations"

    def __init__(self, maximum: int) -> None:
        super().__init__(f"A project has at most {maximum} active online evaluations: pause or delete one first.")
