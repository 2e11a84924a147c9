from __future__ import annotations

from core.errors import ConflictError, NotFoundError

EvaluatorNotFoundError = NotFoundError.kind("evaluator_not_found", "There is no such evaluator in this project.")
EvaluatorVersionNotFoundError = NotFoundError.kind("evaluator_version_not_found", "The evaluator has no such version.")
EvaluatorExistsError = ConflictError.kind("evaluator_exists", "There is an evaluator of this name.", field="name")
TooManyEvaluatorsError = ConflictError.kind("too_many_evaluators", "There are {} {}; no more may be made.")
