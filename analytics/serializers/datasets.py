"""The bodies and parameters of the requests that make data sets and change their items."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers
from rest_framework.fields import empty

from analytics.datasets.errors import InvalidItemError
from analytics.datasets.items import MAX_TAG_CHARACTERS, MAX_TAGS, NewItem, read_item, read_tags, require_storable
from analytics.datasets.sources import Options
from analytics.models.datasets import DATASET_NAME_CHARACTERS, DESCRIPTION_CHARACTERS, DatasetRetention
from analytics.models.reviews import ItemState
from analytics.parameters.requests import RequestParameters
from analytics.parameters.values import TextsField
from analytics.queries.request_filters import RequestFilter
from analytics.queries.request_samples import SampleOrder
from analytics.request_log.record import Operation
from core.wire.parameters import Parameters
from core.wire.serializers import BodySerializer

MAX_ITEMS_AT_ONCE = 1_000
MAX_REQUEST_IDS = 100
DEFAULT_ITEMS = 100

_MAX_FILTER_CHARACTERS = 1024
_CLIENTS = "gateway"

_OBJECT: dict[str, Any] = {"type": "object", "additionalProperties": True}
_ITEM: dict[str, Any] = {
    "type": "object",
    "required": ["messages"],
    "additionalProperties": False,
    "properties": {
        "messages": {"type": "array", "minItems": 1, "items": _OBJECT},
        "variables": {**_OBJECT, "nullable": True},
        "parameters": {**_OBJECT, "nullable": True},
        "expected": {"description": "A text or any other JSON; null if no answer is expected."},
        "tags": {
            "type": "array",
            "maxItems": MAX_TAGS,
            "items": {"type": "string", "minLength": 1, "maxLength": MAX_TAG_CHARACTERS},
        },
        "source_request_id": {"type": "string", "format": "uuid", "nullable": True},
        "prompt_config_id": {"type": "string", "format": "uuid", "nullable": True},
        "prompt_version": {"type": "integer", "minimum": 1, "nullable": True},
    },
}


class VersionParameters(Parameters):
    version = serializers.IntegerField(required=False, min_value=0, help_text="A version; the latest if left out.")


class ImportParameters(Parameters):
    only_new = serializers.BooleanField(
        required=False, default=False, help_text="Whether lines are left out whose input and answer the set has."
    )


class ItemsParameters(VersionParameters):
    tag = serializers.CharField(required=False, max_length=MAX_TAG_CHARACTERS)


class RemovalParameters(Parameters):
    erase = serializers.BooleanField(
        required=False, default=False, help_text="Whether the item is deleted from earlier versions too."
    )


class DatasetChangeSerializer(BodySerializer):
    name = serializers.CharField(required=False, max_length=DATASET_NAME_CHARACTERS)
    description = serializers.CharField(required=False, allow_blank=True, max_length=DESCRIPTION_CHARACTERS)
    retention = serializers.ChoiceField(
        required=False,
        choices=DatasetRetention.choices,
        help_text="project: items go with the project's retention. kept: they stay until they are deleted.",
    )


class NewDatasetSerializer(DatasetChangeSerializer):
    name = serializers.CharField(max_length=DATASET_NAME_CHARACTERS)


@extend_schema_field(_ITEM)
class ItemField(serializers.Field[Any, Any, Any, Any]):
    """An item, as a line of a file has it. What is wrong with it has an error of its own, and no field's."""

    def run_validation(self, data: Any = empty) -> Any:
        return data

    def to_representation(self, value: Any) -> Any:
        return value


@extend_schema_field(
    {"type": "array", "maxItems": MAX_TAGS, "items": {"type": "string", "maxLength": MAX_TAG_CHARACTERS}}
)
class TagsField(serializers.Field[Any, Any, Any, Any]):
    def to_internal_value(self, data: Any) -> list[str]:
        return read_tags(data)

    def to_representation(self, value: Any) -> Any:
        return value


class TagsOfAllField(TagsField):
    """Tags that stand beside what is to be taken, and not in an item."""

    def to_internal_value(self, data: Any) -> list[str]:
        try:
            return super().to_internal_value(data)
        except InvalidItemError as error:
            found = {path.removeprefix("tags").removeprefix("."): [text] for path, text in error.problems.items()}
            raise serializers.ValidationError(found.get("", found)) from None


class NewItemsSerializer(BodySerializer):
    items = serializers.ListField(child=ItemField(), min_length=1, max_length=MAX_ITEMS_AT_ONCE)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        # What is wrong with the body itself is told first.
        items: list[NewItem] = [_read(item, f"items.{place}") for place, item in enumerate(attrs["items"])]
        return {**attrs, "items": items}


class ItemChangeSerializer(BodySerializer):
    """Only what is expected and the tags may change: an item with another input is another item."""

    expected = serializers.JSONField(
        required=False, allow_null=True, help_text="A text or any other JSON; null if no answer is expected."
    )
    tags = TagsField(required=False)

    def validate_expected(self, value: Any) -> Any:
        require_storable(value, "expected")
        return value


class OptionsSerializer(BodySerializer):
    tags = TagsOfAllField(required=False, default=list, help_text="Tags that each new item gets.")
    expect_answer = serializers.BooleanField(
        required=False, default=False, help_text="Whether the text of the answer that was given is expected."
    )

    @property
    def options(self) -> Options:
        return Options(tags=self.validated_data["tags"], expect_answer=self.validated_data["expect_answer"])


class FromRequestsSerializer(OptionsSerializer):
    is_needed = True

    filter = serializers.DictField(
        child=TextsField(_MAX_FILTER_CHARACTERS),
        required=False,
        help_text="Parameters of the request log; source is gateway if it is left out.",
    )
    order = serializers.ChoiceField(
        required=False, choices=[str(order) for order in SampleOrder], default=str(SampleOrder.NEWEST)
    )
    limit = serializers.IntegerField(
        required=False, default=DEFAULT_ITEMS, min_value=1, max_value=MAX_ITEMS_AT_ONCE, help_text="Of a filter."
    )
    request_ids = serializers.ListField(
        child=serializers.UUIDField(),
        required=False,
        min_length=1,
        max_length=MAX_REQUEST_IDS,
        help_text="Instead of a filter.",
    )

    def validate_filter(self, value: dict[str, Any]) -> dict[str, Any]:
        return checked_filter(value)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        if "filter" in attrs and "request_ids" in attrs:
            raise serializers.ValidationError({"request_ids": "Cannot be given beside filter."})
        return attrs

    @property
    def request_ids_given(self) -> list[UUID] | None:
        found: list[UUID] | None = self.validated_data.get("request_ids")
        return found

    @property
    def filters(self) -> RequestFilter:
        return RequestParameters(data={"source": _CLIENTS, **self.validated_data.get("filter", {})}).to_filter()


class FromReviewSerializer(OptionsSerializer):
    queue_id = serializers.UUIDField()
    states = serializers.ListField(
        child=serializers.ChoiceField(choices=ItemState.choices),
        required=False,
        default=lambda: [ItemState.DONE.value],
        min_length=1,
        help_text="Items of the queue in these states.",
    )


def checked_filter(value: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the parameters that are not empty. Raises rest_framework's ValidationError, which names one that the
    request log does not have or that is wrong."""
    given = {name: item for name, item in value.items() if item not in ("", [])}
    unknown = sorted(given.keys() - RequestParameters().fields.keys())
    if unknown:
        raise serializers.ValidationError({unknown[0][:100]: ["The request log has no such parameter."]})
    if given.get("operation", str(Operation.CHAT)) not in (str(Operation.CHAT), [str(Operation.CHAT)]):
        raise serializers.ValidationError({"operation": ["Only chat completions can be items."]})
    RequestParameters(data={"source": _CLIENTS, **given}).is_valid(raise_exception=True)
    return given


def _read(item: Any, place: str) -> NewItem:
    try:
        return read_item(item)
    except InvalidItemError as error:
        raise error.at(place) from None
