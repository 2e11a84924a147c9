"""The endpoints of integrations, a project's access to providers."""

from __future__ import annotations

from uuid import UUID

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.throttling import SimpleRateThrottle
from rest_framework.views import APIView
from typing_extensions import override

from core.api.authentication import ProjectAccess
from core.errors import ValidationError
from core.openapi import PAGE, operation
from core.views import ProjectAPIView
from core.wire.pagination import LimitOffset
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


class TestThrottle(SimpleRateThrottle):
    """The limit of tests, counted per process. Tests are sent from the gateway's own addresses, so no project may send
    so many that a provider blocks them."""

    scope = "integration_tests"
    rate = "60/min"

    @override
    def get_cache_key(self, request: Request, view: APIView) -> str | None:
        return f"integration-tests:{request.auth.project_id}" if isinstance(request.auth, ProjectAccess) else None


class IntegrationsView(ProjectAPIView):
    @operation("listIntegrations", "List provider integrations", query=[PAGE], page=IntegrationEntry)
    def get(self, request: Request) -> Response:
        paginator = LimitOffset()
        rows = paginator.paginate_queryset(project_integrations(self.project_id), request, self)
        return paginator.get_paginated_response(IntegrationSerializer(rows, many=True).data)

    @operation(
        "addIntegration",
        "Add a provider",
        body=NewIntegrationSerializer,
        answer=IntegrationEntry,
        status=201,
        errors=[409],
    )
    def post(self, request: Request) -> Response:
        serializer = NewIntegrationSerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        row = add_integration(
            project_id=self.project_id,
            provider=serializer.validated_data["provider"],
            name=serializer.validated_data.get("name", ""),
            change=serializer.change(),
        )
        return Response(IntegrationSerializer(row).data, status=status.HTTP_201_CREATED)


class IntegrationView(ProjectAPIView):
    @operation(
        "updateIntegration",
        "Change a provider's key or options",
        body=IntegrationChangeSerializer,
        answer=IntegrationEntry,
        errors=[404, 409],
    )
    def put(self, request: Request, name: str) -> Response:
        serializer = _change_of(self.project_id, name, request)
        row = update_integration(project_id=self.project_id, name=name, change=serializer.change())
        return Response(IntegrationSerializer(row).data)

    @operation("removeIntegration", "Remove a provider and its key", status=204, errors=[404])
    def delete(self, request: Request, name: str) -> Response:
        remove_integration(project_id=self.project_id, name=name)
        return Response(status=status.HTTP_204_NO_CONTENT)


class IntegrationTestView(ProjectAPIView):
    """Tests the stored integration, or the fields in the body, as for PUT, without storing them. A refused credential
    is a 200 too, since the test was made."""

    throttle_classes = [TestThrottle]

    @operation(
        "testIntegration",
        "Try a provider",
        body=IntegrationChangeSerializer,
        answer=OutcomeSerializer,
        errors=[404, 429],
    )
    def post(self, request: Request, name: str) -> Response:
        serializer = _change_of(self.project_id, name, request)
        provider = serializer.validated_data.get("provider", "")
        outcome = try_integration(project_id=self.project_id, name=name, provider=provider, change=serializer.change())
        return Response(OutcomeSerializer(outcome).data)


def _change_of(project_id: UUID, name: str, request: Request) -> IntegrationChangeSerializer:
    serializer = IntegrationChangeSerializer(data=request.data)
    serializer.is_valid(raise_exception=True)
    provider = provider_of(project_id, name) or (name if is_known(name) else "")
    for field, value in (("name", name), ("provider", provider)):
        if value and serializer.validated_data.get(field, value) != value:
            problem = "Differs from that of the path."
            raise ValidationError(f"{field}: {problem}", details={field: [problem]})
    return serializer
