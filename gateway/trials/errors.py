"""Failures of trials.

ApplicationError
├── NotFoundError
│   ├── TrialNotFoundError           404
│   └── TrialInputNotFoundError      404
├── ConflictError
│   ├── NoInputsError                409
│   ├── TooManyTrialsError           409
│   └── TrialEndedError              409
└── ValidationError
    └── UnusableInputError           400, of one input: the answers to it have this error
"""

from __future__ import annotations

from core.errors import ConflictError, NotFoundError, ValidationError


class TrialNotFoundError(NotFoundError):
    code = "trial_not_found"

    def __init__(self) -> None:
        super().__init__("The project has no such trial.")


class TrialInputNotFoundError(NotFoundError):
    code = "trial_input_not_found"

    def __init__(self) -> None:
        super().__init__("The trial has no such input.")


class NoInputsError(ConflictError):
    code = "no_inputs"

    def __init__(self) -> None:
        super().__init__(
            "No chat completion whose texts are stored matches the filter. Widen it, or wait for the first requests."
        )


class TooManyTrialsError(ConflictError):
    code = "too_many_trials"

    def __init__(self, limit: int) -> None:
        super().__init__(f"The project has {limit} trials that have not ended: wait for one, or cancel one.")


class TrialEndedError(ConflictError):
    code = "trial_ended"

    def __init__(self) -> None:
        super().__init__("The trial has ended already.")


class UnusableInputError(ValidationError):
    code = "unusable_input"
