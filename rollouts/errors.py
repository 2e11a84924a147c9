"""Failures of the rollouts app.

ApplicationError
├── ValidationError
│   └── InvalidRolloutError      400, `details` by field of the rollout
├── NotFoundError
│   └── RolloutNotFoundError     404
└── ConflictError
    ├── RolloutExistsError       409: the config has an active rollout
    ├── RefusedTransitionError   409: the status does not allow it
    ├── GateNotPassedError       409: what the gate asks for is not shown
    └── RolloutMovedError        409: somebody else was faster
"""

from __future__ import annotations

from uuid import UUID

from core.errors import ConflictError, NotFoundError, ValidationError


class InvalidRolloutError(ValidationError):
    def __init__(self, field: str, problem: str) -> None:
        super().__init__(f"{field}: {problem}", details={field: [problem]})


class RolloutNotFoundError(NotFoundError):
    code = "rollout_not_found"

    def __init__(self) -> None:
        super().__init__("The project has no such rollout.")


class RolloutExistsError(ConflictError):
    code = "rollout_active"

    def __init__(self) -> None:
        super().__init__("The prompt config has an active rollout: complete it or roll it back first.")


class RefusedTransitionError(ConflictError):
    code = "transition_refused"


class GateNotPassedError(ConflictError):
    """Raised with what is missing in a sentence, and the experiment that comes nearest to passing."""

    code = "gate_not_passed"

    def __init__(self, missing: str, experiment_id: UUID | None) -> None:
        details = {"gate": [missing], **({"experiment_id": [str(experiment_id)]} if experiment_id else {})}
        super().__init__(f"The gate is not passed. {missing}", details=details)


class RolloutMovedError(ConflictError):
    """Raised when somebody else moved the rollout first, so that two simultaneous promotions advance one stage."""

    code = "rollout_moved"

    def __init__(self) -> None:
        super().__init__("The rollout moved to another stage while the call was under way.")
