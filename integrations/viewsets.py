from __future__ import annotations

from rest_framework import status
from rest_framework.decorators import action
from rest_framework.request import Request
from rest_framework.response import Response

from core.api.throttles import ProjectThrottle
from core.api.viewsets import ProjectViewSet
from core.errors import ValidationError
from core.openapi import PAGE, operation
from integrations.connection_tests.services import try_integration
from integrations.registry import is_known
from integrations.selectors import project_integrations, provider_of
from integrations.serializers import (
    IntegrationChangeSerializer,
    IntegrationSerializer,
    NewIntegrationSerializer,
    OutcomeSerializer,
)
from integrations.services import add_integration, remove_integration, update_integration
from integrations.shapes import IntegrationEntry


class TestThrottle(ProjectThrottle):
    """Tests leave from the gateway's own addresses, so no project may send so many that a provider blocks them."""

    scope = "integration_tests"
    rate = "60/min"


class IntegrationViewSet(ProjectViewSet):
    lookup_url_kwarg = "name"

    @operation("listIntegrations", "List provider integrations", query=[PAGE], page=IntegrationEntry)
    def list(self, request: Request) -> Response:
        return self.page(project_integrations(self.project_id), IntegrationSerializer)

    @operation(
        "addIntegration",
        "Add a provider",
        body=NewIntegrationSerializer,
        answer=IntegrationEntry,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        serializer = self.valid_body(NewIntegrationSerializer)
        row = add_integration(
            project_id=self.project_id,
            provider=serializer.validated_data["provider"],
            name=serializer.validated_data.get("name", ""),
            change=serializer.change(),
        )
        return Response(IntegrationSerializer(row).data, status=status.HTTP_201_CREATED)

    @operation(
        "updateIntegration",
        "Change a provider's key or options",
        body=IntegrationChangeSerializer,
        answer=IntegrationEntry,
        errors=[404, 409],
    )
    def update(self, request: Request, name: str) -> Response:
        row = update_integration(project_id=self.project_id, name=name, change=self._change_of(name).change())
        return Response(IntegrationSerializer(row).data)

    @operation("removeIntegration", "Remove a provider and its key", status=204, errors=[404])
    def destroy(self, request: Request, name: str) -> Response:
        remove_integration(project_id=self.project_id, name=name)
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation(
        "testIntegration",
        "Try a provider",
        body=IntegrationChangeSerializer,
        answer=OutcomeSerializer,
        errors=[404, 429],
    )
    @action(detail=True, methods=["post"], throttle_classes=[TestThrottle])
    def test(self, request: Request, name: str) -> Response:
        """Tests the stored integration, or the fields in the body, as for PUT, without storing them. A refused
        credential is a 200 too, since the test was made."""
        serializer = self._change_of(name)
        provider = serializer.validated_data.get("provider", "")
        outcome = try_integration(project_id=self.project_id, name=name, provider=provider, change=serializer.change())
        return Response(OutcomeSerializer(outcome).data)

    def _change_of(self, name: str) -> IntegrationChangeSerializer:
        serializer = self.valid_body(IntegrationChangeSerializer)
        provider = provider_of(self.project_id, name) or (name if is_known(name) else "")
        for field, value in (("name", name), ("provider", provider)):
            if value and serializer.validated_data.get(field, value) != value:
                problem = "Differs from that of the path."
                raise ValidationError.of_field(field, problem)
        return serializer
