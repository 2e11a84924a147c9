from __future__ import annotations

from core.errors import ConflictError, NotFoundError

OnlineEvaluationNotFoundError = NotFoundError.kind(
    "online_evaluation_not_found", "There is no such online evaluation in this project."
)
TooManyOnlineEvaluationsError = ConflictError.kind(
    "too_many_online_evaluations", "A project has at most {} active online evaluations: pause or delete one first."
)
