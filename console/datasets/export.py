from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http.response import HttpResponseBase

from analytics.datasets.lines import dataset_lines
from analytics.datasets.selectors import get_dataset
from analytics.exports.lines import streamed_rows
from core.ui.pages import Page, Visit


class DatasetExportPage(Page):
    route = "datasets/<uuid:project_id>/<uuid:dataset_id>/export/"
    name = "dataset_export"
    title = "Export of a data set"
    parent = "datasets"

    def _page(self, visit: Visit, route: Mapping[str, Any]) -> HttpResponseBase:
        dataset = get_dataset(visit.project.pk, route["dataset_id"])
        text = visit.request.GET.get("version", "")
        known = text.isascii() and text.isdecimal() and len(text) <= 9 and int(text) < dataset.version
        version = int(text) if known else dataset.version
        lines = dataset_lines(dataset, version)
        return streamed_rows(lines, "application/x-ndjson", f"dataset-{dataset.pk}-version-{version}.jsonl")
