from __future__ import annotations

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.deletion.services import delete_user
from analytics.models import END_USER_CHARACTERS
from analytics.parameters.common import require_id
from analytics.presenters.users import end_user
from analytics.wire.users import EndUser
from core.api.viewsets import ProjectViewSet
from core.openapi import operation
from core.wire.shown import shown


class EndUserViewSet(ProjectViewSet):
    lookup_url_kwarg = "user_id"
    lookup_value_converter = "slashed"

    @operation("getUser", "What is held of an end user, and how far an erasure is", answer=EndUser, errors=[404])
    def retrieve(self, request: Request, user_id: str) -> Response:
        """Counted is what an erasure would make anonymous: the requests that name the user, and whole sessions that
        name no other user."""
        require_id("user_id", user_id, END_USER_CHARACTERS)
        return Response(shown(end_user(self.project_id, user_id)))

    @operation("deleteUser", "Erase an end user", status=202, answer=EndUser, errors=[404])
    def destroy(self, request: Request, user_id: str) -> Response:
        """Erases the user's requests and sessions within seconds, of many requests within minutes; `getUser` shows the
        progress. Limits that name the user are removed at once. Sums of requests, tokens and costs stay."""
        require_id("user_id", user_id, END_USER_CHARACTERS)
        delete_user(self.project_id, user_id, actor=self.actor)
        return Response(shown(end_user(self.project_id, user_id)), status=status.HTTP_202_ACCEPTED)
