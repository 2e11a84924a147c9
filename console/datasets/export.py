"""The items of a data set as a file of JSON lines."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from django.http import Http404
from django.http.response import HttpResponseBase

from analytics.datasets.errors import DatasetNotFoundError
from analytics.datasets.lines import dataset_lines
from analytics.datasets.selectors import get_dataset
from analytics.exports.streaming import streamed_rows
from core.ui.pages import Page, Visit
from core.ui.registry import register_page


@register_page
class DatasetExportPage(Page):
    """The export has no page of its own: a link of the set's page leads to the file."""

    route = "datasets/<uuid:project_id>/<uuid:dataset_id>/export/"
    name = "dataset_export"
    title = "Export of a data set"
    template = "ui/page.html"
    parent = "datasets"

    def _page(self, visit: Visit, route: Mapping[str, Any]) -> HttpResponseBase:
        try:
            dataset = get_dataset(visit.project.pk, route["dataset_id"])
        except DatasetNotFoundError as error:
            raise Http404(error.message) from error
        text = visit.request.GET.get("version", "")
        known = text.isascii() and text.isdecimal() and len(text) <= 9 and int(text) < dataset.version
        version = int(text) if known else dataset.version
        lines = dataset_lines(dataset, version)
        return streamed_rows(lines, "application/x-ndjson", f"dataset-{dataset.pk}-version-{version}.jsonl")
