"""Failures of review queues.

ApplicationError
├── NotFoundError
│   ├── QueueNotFoundError      the project has no queue of this id
│   ├── ItemNotFoundError       the queue has no item of this id
│   └── RequestNotFoundError    the project has no request of this id
├── ConflictError
│   ├── QueueExistsError        the project has a queue of this name
│   ├── QueueClosedError        the queue takes no more scores and items
│   ├── QueueFullError          the queue has as many items as one may have
│   └── ItemTakenError          another person has the item open, or has scored it
└── ValidationError
    └── NothingToReviewError    no request matches the filter of a new queue
"""

from __future__ import annotations

from core.errors import ConflictError, NotFoundError, ValidationError


class QueueNotFoundError(NotFoundError):
    code = "review_queue_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such review queue in this project.")


class ItemNotFoundError(NotFoundError):
    code = "review_item_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such item in this review queue.")


class RequestNotFoundError(NotFoundError):
    code = "request_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such request in this project.")


class QueueExistsError(ConflictError):
    code = "review_queue_exists"

    def __init__(self) -> None:
        problem = "There is a review queue of this name."
        super().__init__(f"name: {problem}", details={"name": [problem]})


class QueueClosedError(ConflictError):
    code = "review_queue_closed"

    def __init__(self) -> None:
        super().__init__("The review queue is closed.")


class QueueFullError(ConflictError):
    code = "review_queue_full"

    def __init__(self, maximum: int) -> None:
        super().__init__(f"The review queue has {maximum:,} items; no more fit in.")


class ItemTakenError(ConflictError):
    code = "review_item_taken"


class NothingToReviewError(ValidationError):
    code = "nothing_to_review"

    def __init__(self) -> None:
        problem = "No request matches."
        super().__init__(f"filter: {problem}", details={"filter": [problem]})
