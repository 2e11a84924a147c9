"""The project's access to providers."""

from __future__ import annotations

from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.pagination import LimitOffset
from core.views import ProjectAPIView
from integrations.selectors import project_integrations
from integrations.serializers import IntegrationChangeSerializer, IntegrationSerializer, NewIntegrationSerializer
from integrations.services import add_integration, remove_integration, update_integration


class IntegrationsView(ProjectAPIView):
    def get(self, request: Request) -> Response:
        paginator = LimitOffset()
        rows = paginator.paginate_queryset(project_integrations(self.project_id), request, self)
        return paginator.get_paginated_response(IntegrationSerializer(rows, many=True).data)

    def post(self, request: Request) -> Response:
        wanted = NewIntegrationSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        row = add_integration(
            project_id=self.project_id, provider=wanted.validated_data["provider"], change=wanted.change()
        )
        return Response(IntegrationSerializer(row).data, status=status.HTTP_201_CREATED)


class IntegrationView(ProjectAPIView):
    def put(self, request: Request, provider: str) -> Response:
        wanted = IntegrationChangeSerializer(data=request.data)
        wanted.is_valid(raise_exception=True)
        row = update_integration(project_id=self.project_id, provider=provider, change=wanted.change())
        return Response(IntegrationSerializer(row).data)

    def delete(self, request: Request, provider: str) -> Response:
        remove_integration(project_id=self.project_id, provider=provider)
        return Response(status=status.HTTP_204_NO_CONTENT)
