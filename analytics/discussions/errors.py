from __future__ import annotations

from core.errors import ConflictError, NotFoundError, PermissionDeniedError, ValidationError

TooManyCommentsError = ConflictError.kind("too_many_comments", "A {} has at most {} comments: delete one first.")
NotAssignableError = ValidationError.kind(
    ValidationError.code, "Nobody of this name is a member of this project.", field="assignee"
)
NotYourCommentError = PermissionDeniedError.kind(
    "not_your_comment", "Only the author and administrators change or delete a comment."
)
CommentNotFoundError = NotFoundError.kind("comment_not_found", "There is no such comment in this project.")
AssignmentNotFoundError = NotFoundError.kind("assignment_not_found", "There is no such assignment in this project.")


class SubjectNotFoundError(NotFoundError):
    def __init__(self, kind: str) -> None:
        super().__init__(f"There is no such {kind} in this project.", code=f"{kind}_not_found")
