from __future__ import annotations

from uuid import UUID

from core.errors import ConflictError, NotFoundError, ValidationError


class InvalidRolloutError(ValidationError):
    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}", details={field: [problem]})


RolloutNotFoundError = NotFoundError.kind("rollout_not_found", "The project has no such rollout.")
RolloutExistsError = ConflictError.kind(
    "rollout_active", "The prompt config has an active rollout: complete it or roll it back first."
)
RefusedTransitionError = ConflictError.kind("transition_refused")


class GateNotPassedError(ConflictError):
    code = "gate_not_passed"

    def __init__(self, missing: str, experiment_id: UUID | None) -> None:
        details = {"gate": [missing], **({"experiment_id": [str(experiment_id)]} if experiment_id else {})}
        super().__init__(f"The gate is not passed. {missing}", details=details)


# Raised when somebody else moved the rollout first, so that two simultaneous promotions advance one stage.
RolloutMovedError = ConflictError.kind(
    "rollout_moved", "The rollout moved to another stage while the call was under way."
)
