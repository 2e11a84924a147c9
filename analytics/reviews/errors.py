from __future__ import annotations

from core.errors import ConflictError, NotFoundError, ValidationError

QueueNotFoundError = NotFoundError.kind("review_queue_not_found", "There is no such review queue in this project.")
ItemNotFoundError = NotFoundError.kind("review_item_not_found", "There is no such item in this review queue.")
RequestNotFoundError = NotFoundError.kind("request_not_found", "There is no such request in this project.")
QueueExistsError = ConflictError.kind("review_queue_exists", "There is a review queue of this name.", field="name")
QueueClosedError = ConflictError.kind("review_queue_closed", "The review queue is closed.")
QueueFullError = ConflictError.kind("review_queue_full", "The review queue has {:,} items; no more fit in.")
ItemTakenError = ConflictError.kind("review_item_taken")
NothingToReviewError = ValidationError.kind("nothing_to_review", "No request matches.", field="filter")
