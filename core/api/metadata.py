"""The answer to OPTIONS requests."""

from __future__ import annotations

from typing import Any

from rest_framework.metadata import SimpleMetadata
from rest_framework.request import Request


class PathMetadata(SimpleMetadata):
    """Returns name and media types of a path. DRF's own class would describe bodies by the serializer of lists, and
    would look up a record by DRF's own argument names."""

    def determine_actions(self, request: Request, view: Any) -> dict[str, Any]:
        return {}
