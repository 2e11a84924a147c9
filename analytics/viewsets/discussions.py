"""The endpoints of comments on requests and sessions, and of their assignments."""

from __future__ import annotations

from uuid import UUID

from rest_framework.request import Request
from rest_framework.response import Response

from analytics.discussions import services
from analytics.discussions.selectors import list_assignments, list_comments
from analytics.models import Comment
from analytics.serializers.discussions import (
    AssignmentChangeSerializer,
    AssignmentEntry,
    AssignmentParameters,
    CommentEntry,
    CommentParameters,
    CommentTextSerializer,
    NewAssignmentSerializer,
    NewCommentSerializer,
    assignment_entry,
    comment_entry,
)
from core.api.viewsets import ProjectViewSet
from core.openapi import PAGE, operation
from core.roles import Right


class CommentViewSet(ProjectViewSet):
    lookup_url_kwarg = "comment_id"
    lookup_value_converter = "uuid"

    @operation("listComments", "Comments on requests and sessions", query=[PAGE, CommentParameters], page=CommentEntry)
    def list(self, request: Request) -> Response:
        """The comments on one request or session, the oldest first, or those of the whole project, the latest first.
        `text` and `mentions` are null for a reader without content, for whom `mentions` finds nothing."""
        given = self.valid_query(CommentParameters)
        author, mentioned = given.validated_data.get("created_by", ""), given.validated_data.get("mentions", "")
        found = list_comments(self.project_id, given.subject, author=author, mentioned=mentioned)
        if mentioned and not self.sees_content:
            found = found.none()
        return self.get_paginated_response([self._shown(row) for row in self.rows_of_page(found)])

    @operation(
        "addComment", "Add a comment", body=NewCommentSerializer, answer=CommentEntry, status=201, errors=[404, 409]
    )
    def create(self, request: Request) -> Response:
        """The text is plain; `@name` mentions a member of the project."""
        body = self.valid_body(NewCommentSerializer)
        row = services.add_comment(
            project_id=self.project_id, subject=body.named, text=body.validated_data["text"], actor=self.actor
        )
        return Response(self._shown(row), status=201)

    @operation("changeComment", "Change a comment", body=CommentTextSerializer, answer=CommentEntry, errors=[404])
    def partial_update(self, request: Request, comment_id: UUID) -> Response:
        """Its author and administrators may change a comment; it says who did so last, and when."""
        text = self.valid_body(CommentTextSerializer).validated_data["text"]
        row = services.change_comment(
            project_id=self.project_id,
            comment_id=comment_id,
            text=text,
            actor=self.actor,
            is_administrator=self._is_administrator,
        )
        return Response(self._shown(row))

    @operation("deleteComment", "Delete a comment", status=204, errors=[404])
    def destroy(self, request: Request, comment_id: UUID) -> Response:
        """Its author and administrators may delete a comment."""
        services.delete_comment(
            project_id=self.project_id,
            comment_id=comment_id,
            actor=self.actor,
            is_administrator=self._is_administrator,
        )
        return Response(status=204)

    @property
    def _is_administrator(self) -> bool:
        return Right.ADMINISTER in self.access.rights

    def _shown(self, row: Comment) -> CommentEntry:
        return comment_entry(row, sees_content=self.sees_content)


class AssignmentViewSet(ProjectViewSet):
    lookup_url_kwarg = "assignment_id"
    lookup_value_converter = "uuid"

    @operation("listAssignments", "Who looks after what", query=[PAGE, AssignmentParameters], page=AssignmentEntry)
    def list(self, request: Request) -> Response:
        """The assignments of requests and sessions, the latest first."""
        given = self.valid_query(AssignmentParameters)
        filters = {name: given.validated_data.get(name, "") for name in ("assignee", "state")}
        found = list_assignments(self.project_id, given.subject, **filters)
        return self.get_paginated_response([assignment_entry(row) for row in self.rows_of_page(found)])

    @operation(
        "assign",
        "Assign a request or session",
        body=NewAssignmentSerializer,
        answer=AssignmentEntry,
        status=201,
        also={(200, "application/json"): AssignmentEntry},
        errors=[404],
    )
    def create(self, request: Request) -> Response:
        """Gives a request or session to a member, as open: 201, or 200 for one that somebody had already."""
        body = self.valid_body(NewAssignmentSerializer)
        row, made = services.assign(
            project_id=self.project_id,
            subject=body.named,
            assignee=body.validated_data["assignee"],
            actor=self.actor,
        )
        return Response(assignment_entry(row), status=201 if made else 200)

    @operation(
        "changeAssignment",
        "Change an assignment",
        body=AssignmentChangeSerializer,
        answer=AssignmentEntry,
        errors=[404],
    )
    def partial_update(self, request: Request, assignment_id: UUID) -> Response:
        """Says that it is done, or open again, or gives it to somebody else."""
        given = self.valid_body(AssignmentChangeSerializer).validated_data
        row = services.change_assignment(
            project_id=self.project_id, assignment_id=assignment_id, actor=self.actor, **given
        )
        return Response(assignment_entry(row))

    @operation("deleteAssignment", "Take an assignment away", status=204, errors=[404])
    def destroy(self, request: Request, assignment_id: UUID) -> Response:
        services.delete_assignment(project_id=self.project_id, assignment_id=assignment_id, actor=self.actor)
        return Response(status=204)
