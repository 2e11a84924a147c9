from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any

from analytics.datasets.selectors import list_items
from analytics.models.datasets import Dataset, DatasetItem
from analytics.queries.requests import get_payload_at
from gateway.experiments.errors import UnusableItemError
from gateway.models import Experiment, ExperimentItem

# Items are read ahead, since they are tried in their order.
_READ_AHEAD = 20
_MAX_KEPT = 3 * _READ_AHEAD


@dataclass(frozen=True, slots=True)
class Input:
    fields: Mapping[str, Any]
    expected: Any = None


_GONE = UnusableItemError("The item of the data set does not exist any more.")


class Inputs:
    """The inputs of one experiment, cached; threads may share it."""

    def __init__(self, experiment: Experiment) -> None:
        self._experiment = experiment
        self._kept: OrderedDict[int, Input | UnusableItemError] = OrderedDict()
        self._lock = Lock()

    def of(self, item: ExperimentItem) -> Input:
        """Raises UnusableItemError if the item is gone or cannot be read, and the errors of the stores."""
        with self._lock:
            found = self._kept.get(item.position)
            if found is None:
                self._read(item)
                found = self._kept[item.position]
        if isinstance(found, UnusableItemError):
            raise found.with_traceback(None)
        return found

    def _read(self, item: ExperimentItem) -> None:
        if item.dataset_item_id is not None:
            self._read_dataset(item)
        else:
            self._kept[item.position] = self._read_request(item)
        while len(self._kept) > _MAX_KEPT:
            self._kept.popitem(last=False)

    def _read_request(self, item: ExperimentItem) -> Input | UnusableItemError:
        if item.request_id is None or item.requested_at is None:
            return UnusableItemError("The past request is deleted.")
        payload = get_payload_at(self._experiment.project_id, item.requested_at, item.request_id)
        try:
            return Input(_decoded(payload.request if payload is not None else ""))
        except UnusableItemError as error:
            return error

    def _read_dataset(self, item: ExperimentItem) -> None:
        experiment = self._experiment
        ahead = ExperimentItem.objects.filter(experiment=experiment, position__gte=item.position).order_by("position")
        wanted = dict(ahead.values_list("position", "dataset_item_id")[:_READ_AHEAD])
        datasets = Dataset.objects.for_project(experiment.project_id)
        dataset = datasets.filter(pk=experiment.dataset_id).first() if experiment.dataset_id is not None else None
        rows: dict[Any, DatasetItem] = {}
        if dataset is not None:
            ids = [item_id for item_id in wanted.values() if item_id is not None]
            in_version = list_items(dataset, version=experiment.dataset_version)
            rows = {row.item_id: row for row in in_version.filter(item_id__in=ids)}
        for position, item_id in {item.position: item.dataset_item_id, **wanted}.items():
            row = rows.get(item_id)
            self._kept[position] = _GONE if row is None else _of_row(row)
            self._kept.move_to_end(position)


def _of_row(row: DatasetItem) -> Input:
    fields = {**row.parameters, "messages": row.messages, "prompt_variables": row.variables or None}
    return Input(fields, row.expected)


def _decoded(stored: str) -> Mapping[str, Any]:
    try:
        given = json.loads(stored)
    except (ValueError, RecursionError):
        raise UnusableItemError("The stored request is not JSON that can be read.") from None
    if not isinstance(given, dict) or not isinstance(given.get("messages"), list):
        raise UnusableItemError("The stored request has no messages.")
    return given
