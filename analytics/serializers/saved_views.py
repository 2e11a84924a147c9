"""The JSON of saved views."""

from __future__ import annotations

from rest_framework import serializers

from analytics.models import VIEW_NAME_CHARACTERS, VIEW_QUERY_CHARACTERS, ListPage, SavedView
from core.wire.parameters import Parameters
from core.wire.serializers import BodySerializer


class SavedViewSerializer(serializers.ModelSerializer[SavedView]):
    class Meta:
        model = SavedView
        fields = ["id", "page", "name", "query", "updated_at"]
        read_only_fields = fields


class NewViewSerializer(BodySerializer):
    page = serializers.ChoiceField(choices=ListPage.choices)
    name = serializers.CharField(max_length=VIEW_NAME_CHARACTERS)
    query = serializers.CharField(max_length=VIEW_QUERY_CHARACTERS, allow_blank=True, default="")

    def validate_query(self, value: str) -> str:
        if value.count("&") >= _MAX_PARAMETERS:
            raise serializers.ValidationError(f"Must have at most {_MAX_PARAMETERS} parameters.")
        return value


class ViewParameters(Parameters):
    page = serializers.ChoiceField(required=False, choices=ListPage.choices)


_MAX_PARAMETERS = 100
