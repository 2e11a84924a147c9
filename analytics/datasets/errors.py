from __future__ import annotations

from collections.abc import Mapping

from core.errors import ConflictError, NotFoundError, ValidationError

DatasetNotFoundError = NotFoundError.kind("dataset_not_found", "There is no such data set in this project.")
DatasetItemNotFoundError = NotFoundError.kind(
    "dataset_item_not_found", "There is no such item in the latest version of this data set."
)
DatasetExistsError = ConflictError.kind("dataset_exists", "There is a data set of this name.", field="name")
DatasetFullError = ConflictError.kind(
    "dataset_full", "A data set has at most {:,} items. This one has {:,}, so that {:,} more do not fit in."
)
TooManyDatasetsError = ConflictError.kind("too_many_datasets", "A project has at most {} data sets: delete one first.")


class InvalidItemError(ValidationError):
    """`problems` are the path of each wrong field, empty for the whole item, and what is wrong with it."""

    code = "invalid_dataset_item"

    def __init__(self, problems: Mapping[str, str]) -> None:
        path, problem = next(iter(problems.items()))
        details = {name: [found] for name, found in problems.items() if name}
        super().__init__(f"{path}: {problem}" if path else problem, details=details or None)
        self.problems = problems

    def at(self, place: str) -> InvalidItemError:
        """Prefixes the fields with the item's place, such as `line 17`."""
        return InvalidItemError({f"{place}.{path}" if path else place: text for path, text in self.problems.items()})


TextsNotStoredError = ValidationError.kind(
    "texts_not_stored",
    "Requests match, but no texts of them are stored, so that they cannot become items. Texts are stored of"
    " requests that are made while the setting log_content is on.",
)
NothingToAddError = ValidationError.kind("no_request_matches")
