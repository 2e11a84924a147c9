"""The endpoints of API keys (docs/access-control.md#keys)."""

from __future__ import annotations

from django.db import transaction
from django.shortcuts import get_object_or_404
from rest_framework import status
from rest_framework.request import Request
from rest_framework.response import Response

from core.key_serializers import (
    ApiKeyChangeSerializer,
    ApiKeySerializer,
    IssuedApiKeySerializer,
    NewApiKeySerializer,
    RotationSerializer,
)
from core.keys import change_key, issue_key, revoke_key, rotate_key
from core.models import ApiKey, Project
from core.openapi import PAGE, operation
from core.pagination import LimitOffset
from core.views import ProjectAPIView


class ApiKeysView(ProjectAPIView):
    @operation("listApiKeys", "List API keys", query=[PAGE], page=ApiKeySerializer)
    def get(self, request: Request) -> Response:
        paginator = LimitOffset()
        keys = paginator.paginate_queryset(ApiKey.objects.for_project(self.project_id), request, self)
        return paginator.get_paginated_response(ApiKeySerializer(keys, many=True).data)

    @operation(
        "issueApiKey",
        "Issue an API key",
        body=NewApiKeySerializer,
        answer=IssuedApiKeySerializer,
        status=201,
        errors=[404],
    )
    def post(self, request: Request) -> Response:
        """Makes a key. This answer alone holds the key itself."""
        serializer = NewApiKeySerializer(data=request.data)
        serializer.is_valid(raise_exception=True)
        project = get_object_or_404(Project, pk=self.project_id)
        row, key = issue_key(project, **serializer.validated_data)
        return Response({**ApiKeySerializer(row).data, "key": key}, status=status.HTTP_201_CREATED)


class ApiKeyView(ProjectAPIView):
    @operation("getApiKey", "One API key", answer=ApiKeySerializer, errors=[404])
    def get(self, request: Request, key_id: int) -> Response:
        """The key with its limits, without the key itself."""
        row = get_object_or_404(ApiKey.objects.for_project(self.project_id), pk=key_id)
        return Response(ApiKeySerializer(row).data)

    @operation("changeApiKey", "Change an API key", body=ApiKeyChangeSerializer, answer=ApiKeySerializer, errors=[404])
    def patch(self, request: Request, key_id: int) -> Response:
        """Changes the name, the expiry and the limits. Omitted fields stay as they are; scopes do not change."""
        given = ApiKeyChangeSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        with transaction.atomic():
            row = get_object_or_404(ApiKey.objects.for_project(self.project_id).select_for_update(), pk=key_id)
            change_key(row, given.validated_data)
        return Response(ApiKeySerializer(row).data)

    @operation("revokeApiKey", "Revoke an API key", status=204, errors=[404])
    def delete(self, request: Request, key_id: int) -> Response:
        """Revokes a key: the row stays, so that its owner can be found later."""
        revoke_key(get_object_or_404(ApiKey.objects.for_project(self.project_id), pk=key_id))
        return Response(status=status.HTTP_204_NO_CONTENT)


class ApiKeyRotationView(ProjectAPIView):
    @operation(
        "rotateApiKey",
        "Give an API key a new secret",
        body=RotationSerializer,
        answer=IssuedApiKeySerializer,
        errors=[404, 409],
    )
    def post(self, request: Request, key_id: int) -> Response:
        """Makes a new secret, which this answer alone holds; the present one goes on until the grace is over. Id, use
        and limits stay the same."""
        given = RotationSerializer(data=request.data)
        given.is_valid(raise_exception=True)
        with transaction.atomic():
            row = get_object_or_404(ApiKey.objects.for_project(self.project_id).select_for_update(), pk=key_id)
            key = rotate_key(row, grace_seconds=given.validated_data["grace_seconds"])
        return Response({**ApiKeySerializer(row).data, "key": key})
