"""Failures of experiments.

ApplicationError
├── NotFoundError
│   ├── ExperimentNotFoundError           404
│   └── ExperimentItemNotFoundError      404
├── ConflictError
│   ├── NoItemsError                409
│   ├── TooManyExperimentsError           409
│   └── ExperimentEndedError              409
└── ValidationError
    └── UnusableItemError           400, of one item: the answers to it have this error
"""

from __future__ import annotations

from core.errors import ConflictError, NotFoundError, ValidationError


class ExperimentNotFoundError(NotFoundError):
    code = "experiment_not_found"

    def __init__(self) -> None:
        super().__init__("The project has no such experiment.")


class ExperimentItemNotFoundError(NotFoundError):
    code = "experiment_item_not_found"

    def __init__(self) -> None:
        super().__init__("The experiment has no such item.")


class NoItemsError(ConflictError):
    code = "no_items"

    def __init__(
        self,
        message: str = "No chat completion whose texts are stored matches the filter."
        " Widen it, or wait for the first requests.",
    ) -> None:
        super().__init__(message)


class TooManyExperimentsError(ConflictError):
    code = "too_many_experiments"

    def __init__(self, limit: int) -> None:
        super().__init__(f"The project has {limit} experiments that have not ended: wait for one, or cancel one.")


class ExperimentEndedError(ConflictError):
    code = "experiment_ended"

    def __init__(self) -> None:
        super().__init__("The experiment has ended already.")


class UnusableItemError(ValidationError):
    """An item that cannot be tried; `of_candidate`: by this candidate alone."""

    code = "unusable_item"

    def __init__(self, message: str, *, of_candidate: bool = False) -> None:
        super().__init__(message)
        self.of_candidate = of_candidate
