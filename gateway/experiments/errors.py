from __future__ import annotations

from core.errors import ConflictError, NotFoundError, ValidationError

ExperimentNotFoundError = NotFoundError.kind("experiment_not_found", "The project has no such experiment.")
ExperimentItemNotFoundError = NotFoundError.kind("experiment_item_not_found", "The experiment has no such item.")


class NoItemsError(ConflictError):
    code = "no_items"

    def __init__(
        self,
        message: str = "No chat completion whose texts are stored matches the filter."
        " Widen it, or wait for the first requests.",
    ) -> None:
        super().__init__(message)


TooManyExperimentsError = ConflictError.kind(
    "too_many_experiments", "The project has {} experiments that have not ended: wait for one, or cancel one."
)
ExperimentEndedError = ConflictError.kind("experiment_ended", "The experiment has ended already.")
AnswerGivenError = ConflictError.kind("answer_given", "The experiment has another answer in this place already.")
NotOfApplicationError = ConflictError.kind(
    "not_of_application", "The gateway answers for this candidate: only a candidate with `application` is sent answers."
)


def invalid(members: str, index: int, problem: str, field: str = "") -> ValidationError:
    return ValidationError.of_field(".".join(filter(None, (members, str(index), field))), problem)


class UnusableItemError(ValidationError):
    """The item cannot be tried; `of_candidate`: by this candidate only."""

    code = "unusable_item"

    def __init__(self, message: str, *, of_candidate: bool = False) -> None:
        super().__init__(message)
        self.of_candidate = of_candidate
