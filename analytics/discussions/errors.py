"""Failures of comments and assignments.

ApplicationError
├── ConflictError
│   └── TooManyCommentsError        the request or session has as many comments as one may have
├── ValidationError
│   └── NotAssignableError          nobody of this name may read in the project
├── PermissionDeniedError
│   └── NotYourCommentError         somebody else wrote the comment, and the caller is no administrator
└── NotFoundError
    ├── CommentNotFoundError        the project has no comment of this id
    ├── AssignmentNotFoundError     the project has no assignment of this id
    └── SubjectNotFoundError        the project has no such request or session
"""

from __future__ import annotations

from core.errors import ConflictError, NotFoundError, PermissionDeniedError, ValidationError


class TooManyCommentsError(ConflictError):
    code = "too_many_comments"

    def __init__(self, kind: str, limit: int) -> None:
        super().__init__(f"A {kind} has at most {limit} comments: delete one first.")


class NotAssignableError(ValidationError):
    def __init__(self) -> None:
        problem = "Nobody of this name is a member of this project."
        super().__init__(f"assignee: {problem}", details={"assignee": [problem]})


class NotYourCommentError(PermissionDeniedError):
    code = "not_your_comment"

    def __init__(self) -> None:
        super().__init__("Only the author and administrators change or delete a comment.")


class CommentNotFoundError(NotFoundError):
    code = "comment_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such comment in this project.")


class AssignmentNotFoundError(NotFoundError):
    code = "assignment_not_found"

    def __init__(self) -> None:
        super().__init__("There is no such assignment in this project.")


class SubjectNotFoundError(NotFoundError):
    def __init__(self, kind: str) -> None:
        super().__init__(f"There is no such {kind} in this project.", code=f"{kind}_not_found")
