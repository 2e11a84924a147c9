from __future__ import annotations

from rest_framework.request import Request
from rest_framework.response import Response

from core.openapi import PAGE, operation
from core.resources.viewsets import Operation, ResourceViewSet
from gateway.end_users.serializers import (
    EndUserChangeSerializer,
    EndUserLimitSerializer,
    EndUserParameters,
    NewEndUserLimitSerializer,
)
from gateway.end_users.services import END_USER_LIMITS


class EndUserLimitViewSet(ResourceViewSet):
    lookup_url_kwarg = "limit_id"
    lookup_value_converter = "int"
    noun = "EndUserLimit"
    resource = END_USER_LIMITS
    shown = EndUserLimitSerializer
    new = NewEndUserLimitSerializer
    changed = EndUserChangeSerializer
    operations = {
        "create": Operation(
            "Limit an end user", "These limits hold for the user in place of the project's for every user."
        ),
        "retrieve": Operation("The limits of one end user"),
        "partial_update": Operation("Change the limits of an end user", "Omitted limits stay as they are.", (404,)),
        "destroy": Operation(
            "Take the limits of an end user away", "The project's limits for every user hold for this one again."
        ),
    }

    @operation(
        "listEndUserLimits", "List limits of end users", query=[PAGE, EndUserParameters], page=EndUserLimitSerializer
    )
    def list(self, request: Request) -> Response:
        """The end users that have limits by name, in the order of their names."""
        rows = self.resource.rows(self.project_id)
        if user_id := self.valid_query(EndUserParameters).validated_data["user_id"]:
            rows = rows.filter(user_id=user_id)
        return self.page(rows, EndUserLimitSerializer)
