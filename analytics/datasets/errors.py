"""Failures of data sets.

ApplicationError
├── NotFoundError
│   ├── DatasetNotFoundError       the project has no data set of this id
│   └── DatasetItemNotFoundError   the latest version has no item of this id
├── ConflictError
│   ├── DatasetExistsError         the project has a data set of this name
│   ├── DatasetFullError           the items do not fit into the data set
│   └── TooManyDatasetsError       the project has as many data sets as it may
└── ValidationError
    ├── InvalidItemError           an item, or a line of a file, is not one; the field is named
    ├── TextsNotStoredError        requests match, and the project stored no texts of any
    └── NothingToAddError          no request matches
"""

from __future__ import annotations

from collections.abc import Mapping

from core.errors import ConflictError, NotFoundError, ValidationError


class DatasetNotFoundError(NotFoundError):
    code = "dataset_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such data set in this project.")


class DatasetItemNotFoundError(NotFoundError):
    code = "dataset_item_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such item in the latest version of this data set.")


class DatasetExistsError(ConflictError):
    code = "dataset_exists"

    def __init__(self) -> None:
        problem = "There is a data set of this name."
        super().__init__(f"name: {problem}", details={"name": [problem]})


class DatasetFullError(ConflictError):
    code = "dataset_full"

    def __init__(self, *, maximum: int, there: int, new: int) -> None:
        super().__init__(
            f"A data set has at most {maximum:,} items. This one has {there:,}, so that {new:,} more do not fit in."
        )


class TooManyDatasetsError(ConflictError):
    code = "too_many_datasets"

    def __init__(self, maximum: int) -> None:
        super().__init__(f"A project has at most {maximum} data sets: delete one first.")


class InvalidItemError(ValidationError):
    """An item that cannot be taken. `problems` are the path of each wrong field, empty for the whole item, and what is
    wrong with it."""

    code = "invalid_dataset_item"

    def __init__(self, problems: Mapping[str, str]) -> None:
        path, problem = next(iter(problems.items()))
        details = {name: [found] for name, found in problems.items() if name}
        super().__init__(f"{path}: {problem}" if path else problem, details=details or None)
        self.problems = problems

    def at(self, place: str) -> InvalidItemError:
        """Returns the same error with the place of the item before its fields, as `line 17`."""
        return InvalidItemError({f"{place}.{path}" if path else place: text for path, text in self.problems.items()})


class TextsNotStoredError(ValidationError):
    code = "texts_not_stored"

    def __init__(self) -> None:
        super().__init__(
            "Requests match, but no texts of them are stored, so that they cannot become items. Texts are stored of"
            " requests that are made while the setting log_content is on."
        )


class NothingToAddError(ValidationError):
    code = "no_request_matches"

    def __init__(self, field: str) -> None:
        problem = "No chat completion matches."
        super().__init__(f"{field}: {problem}", details={field: [problem]})
