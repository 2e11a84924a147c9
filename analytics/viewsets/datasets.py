"""The endpoints of data sets and their items."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from typing import IO, Any
from uuid import UUID

from django.conf import settings
from django.http import StreamingHttpResponse
from rest_framework import status
from rest_framework.decorators import action
from rest_framework.parsers import BaseParser
from rest_framework.request import Request
from rest_framework.response import Response

from analytics.datasets import services, sources
from analytics.datasets.lines import dataset_lines
from analytics.datasets.selectors import get_dataset, get_item
from analytics.datasets.services import Added
from analytics.datasets.wire import (
    AddedItems,
    DatasetEntry,
    DatasetItemEntry,
    DatasetVersionEntry,
    added_entry,
    dataset_entry,
    item_entry,
    item_without_texts,
)
from analytics.deletion.services import delete_dataset_item
from analytics.exports.lines import streamed_rows
from analytics.models.datasets import DatasetItem
from analytics.presenters import datasets
from analytics.queries.request_samples import SampleOrder
from analytics.serializers.datasets import (
    DatasetChangeSerializer,
    FromRequestsSerializer,
    FromReviewSerializer,
    ImportParameters,
    ItemChangeSerializer,
    ItemsParameters,
    NewDatasetSerializer,
    NewItemsSerializer,
    RemovalParameters,
    VersionParameters,
)
from core.api.viewsets import ProjectViewSet
from core.errors import BodyTooLargeError
from core.openapi import PAGE, operation
from core.wire.pagination import listing_response, parse_page

NDJSON = "application/x-ndjson"
_PIECE = 256 * 1024


class LinesParser(BaseParser):
    """A body of JSON lines, which the view reads piece by piece."""

    media_type = NDJSON

    def parse(
        self, stream: IO[Any], media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> Any:
        return stream


class DatasetViewSet(ProjectViewSet):
    lookup_url_kwarg = "dataset_id"
    lookup_value_converter = "uuid"

    @operation("listDatasets", "List data sets", query=[PAGE], page=DatasetEntry)
    def list(self, request: Request) -> Response:
        """The list has the last changed first."""
        page = parse_page(request)
        return listing_response(request, page, datasets.datasets(self.project_id, page))

    @operation(
        "createDataset",
        "Make a data set",
        body=NewDatasetSerializer,
        answer=DatasetEntry,
        status=201,
        errors=[409],
    )
    def create(self, request: Request) -> Response:
        """The set has no items and version 0. A project has at most 100 sets."""
        given = self.valid_body(NewDatasetSerializer).validated_data
        row = services.create_dataset(project_id=self.project_id, actor=self.actor, **given)
        return Response(dataset_entry(row), status=status.HTTP_201_CREATED)

    @operation("getDataset", "One data set", answer=DatasetEntry, errors=[404])
    def retrieve(self, request: Request, dataset_id: UUID) -> Response:
        """`erased_items` and `expired_items` count those that are in no version any more."""
        return Response(dataset_entry(get_dataset(self.project_id, dataset_id)))

    @operation(
        "changeDataset",
        "Change a data set",
        body=DatasetChangeSerializer,
        answer=DatasetEntry,
        errors=[404, 409],
    )
    def partial_update(self, request: Request, dataset_id: UUID) -> Response:
        """Omitted fields stay as they are. The version stays too: it is one of the items."""
        given = self.valid_body(DatasetChangeSerializer).validated_data
        return Response(
            dataset_entry(services.change_dataset(project_id=self.project_id, dataset_id=dataset_id, values=given))
        )

    @operation("deleteDataset", "Delete a data set", status=204, errors=[404])
    def destroy(self, request: Request, dataset_id: UUID) -> Response:
        """Deletes all versions of all items."""
        services.delete_dataset(**_of(self, dataset_id))
        return Response(status=status.HTTP_204_NO_CONTENT)

    @operation("listDatasetVersions", "Versions of a data set", query=[PAGE], page=DatasetVersionEntry, errors=[404])
    @action(detail=True)
    def versions(self, request: Request, dataset_id: UUID) -> Response:
        """The list has the latest first, each with the kind of change, the number of its items, and who made it."""
        page = parse_page(request)
        return listing_response(request, page, datasets.versions(get_dataset(self.project_id, dataset_id), page))

    @operation(
        "exportDataset",
        "The items as lines of JSON",
        query=[VersionParameters],
        answer={"type": "string"},
        media_type=NDJSON,
        errors=[404],
    )
    @action(detail=True)
    def export(self, request: Request, dataset_id: UUID) -> StreamingHttpResponse:
        """The answer is `application/x-ndjson`: one item per line, as the import takes it."""
        version = self.valid_query(VersionParameters).validated_data.get("version")
        dataset = get_dataset(self.project_id, dataset_id)
        lines = dataset_lines(dataset, version)
        name = f"dataset-{dataset.pk}-version-{dataset.version if version is None else version}.ndjson"
        return streamed_rows(lines, NDJSON, name)

    @operation(
        "importDataset",
        "Add a file of JSON lines",
        query=[ImportParameters],
        body={NDJSON: {"type": "string", "format": "binary"}},
        answer=AddedItems,
        status=201,
        errors=[404, 409],
    )
    @action(detail=True, methods=["post"], url_path="import", parser_classes=[LinesParser])
    def take_file(self, request: Request, dataset_id: UUID) -> Response:
        """The body is `application/x-ndjson`: one item per line, up to 10,000. All are added, as one version, or none;
        an error names the line and the field. With `only_new` the same file can be sent again."""
        given = self.valid_query(ImportParameters).validated_data
        with tempfile.TemporaryFile() as file:
            _copy(request.data, file)
            return _created(services.add_file(**_of(self, dataset_id), file=file, **given))


class DatasetItemViewSet(ProjectViewSet):
    lookup_url_kwarg = "dataset_item_id"
    lookup_value_converter = "uuid"

    @operation(
        "listDatasetItems",
        "Items of a data set",
        query=[PAGE, ItemsParameters],
        page=DatasetItemEntry,
        errors=[404],
    )
    def list(self, request: Request, dataset_id: UUID) -> Response:
        """The items of the latest version, or of `version`, in the order in which they were added. Texts are null for a
        reader without content."""
        page, given = parse_page(request), self.valid_query(ItemsParameters).validated_data
        dataset = get_dataset(self.project_id, dataset_id)
        return listing_response(request, page, datasets.items(dataset, page, **given, with_texts=self.sees_content))

    @operation(
        "addDatasetItems",
        "Add items to a data set",
        body=NewItemsSerializer,
        answer=AddedItems,
        status=201,
        errors=[404, 409],
    )
    def create(self, request: Request, dataset_id: UUID) -> Response:
        """Adds 1 to 1,000 items as one version."""
        items = self.valid_body(NewItemsSerializer).validated_data["items"]
        return _created(services.add_items(**_of(self, dataset_id), items=items))

    @operation(
        "addDatasetItemsFromRequests",
        "Add requests of the log to a data set",
        body=FromRequestsSerializer,
        answer=AddedItems,
        status=201,
        errors=[404, 409],
    )
    @action(detail=False, methods=["post"], url_path="from-requests")
    def from_requests(self, request: Request, dataset_id: UUID) -> Response:
        """Adds chat completions that match a filter, `newest` ones or `random` ones by a hash of their ids, or those
        with the given ids. A request that the set has is left out."""
        body = self.valid_body(FromRequestsSerializer)
        whose = {**_of(self, dataset_id), "options": body.options}
        if (ids := body.request_ids_given) is not None:
            return _created(services.add_found(sources.of_requests, ids, **whose))
        order, limit = SampleOrder(body.validated_data["order"]), body.validated_data["limit"]
        return _created(services.add_found(sources.of_filter, body.filters, order, limit, **whose))

    @operation(
        "addDatasetItemsFromReview",
        "Add a review queue's requests to a data set",
        body=FromReviewSerializer,
        answer=AddedItems,
        status=201,
        errors=[404, 409],
    )
    @action(detail=False, methods=["post"], url_path="from-review")
    def from_review(self, request: Request, dataset_id: UUID) -> Response:
        """Adds the requests of the queue's items in `states`, by default those that people have scored."""
        body = self.valid_body(FromReviewSerializer)
        chosen = body.validated_data["queue_id"], body.validated_data["states"]
        whose = {**_of(self, dataset_id), "options": body.options}
        return _created(services.add_found(sources.of_review, *chosen, **whose))

    @operation("getDatasetItem", "One item of a data set", answer=DatasetItemEntry, errors=[404])
    def retrieve(self, request: Request, dataset_id: UUID, dataset_item_id: UUID) -> Response:
        """The item as the latest version has it. Texts are null for a reader without content."""
        return self._shown(get_item(get_dataset(self.project_id, dataset_id), dataset_item_id))

    @operation(
        "changeDatasetItem",
        "Change what is expected of an item",
        body=ItemChangeSerializer,
        answer=DatasetItemEntry,
        errors=[404],
    )
    def partial_update(self, request: Request, dataset_id: UUID, dataset_item_id: UUID) -> Response:
        """Changes `expected` and `tags`, which makes a version. The item keeps its id."""
        given = self.valid_body(ItemChangeSerializer).validated_data
        return self._shown(services.change_item(**_of(self, dataset_id), item_id=dataset_item_id, values=given))

    @operation(
        "removeDatasetItem", "Remove an item from a data set", query=[RemovalParameters], status=204, errors=[404]
    )
    def destroy(self, request: Request, dataset_id: UUID, dataset_item_id: UUID) -> Response:
        """Makes a version without the item; earlier versions keep it, unless `erase` is true."""
        if self.valid_query(RemovalParameters).validated_data["erase"]:
            delete_dataset_item(get_dataset(self.project_id, dataset_id), dataset_item_id, actor=self.actor)
        else:
            services.remove_item(**_of(self, dataset_id), item_id=dataset_item_id)
        return Response(status=status.HTTP_204_NO_CONTENT)

    def _shown(self, item: DatasetItem) -> Response:
        return Response(item_entry(item) if self.sees_content else item_without_texts(item))


def _of(view: ProjectViewSet, dataset_id: UUID) -> dict[str, Any]:
    return {"project_id": view.project_id, "dataset_id": dataset_id, "actor": view.actor}


def _copy(stream: Any, file: IO[bytes]) -> None:
    """Writes a body into a file, which can be read twice. Raises BodyTooLargeError."""
    while piece := stream.read(_PIECE):
        file.write(piece)
        if file.tell() > settings.DATASET_FILE_BYTES:
            raise BodyTooLargeError(settings.DATASET_FILE_BYTES)
    file.seek(0)


def _created(added: Added) -> Response:
    return Response(added_entry(added), status=status.HTTP_201_CREATED)
