from __future__ import annotations

from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST

from core.openapi.document import KEY_SECURITY, REQUEST_ID
from core.openapi.handwritten import failures

_OTHERWISE = {
    403: "The key has none of the scopes `metrics:read` and `manage` (`scope_missing`).",
    405: "`method_not_allowed`.",
}


def add_metrics(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    figures = {CONTENT_TYPE_LATEST: {"schema": {"type": "string", "contentMediaType": CONTENT_TYPE_LATEST}}}
    result["paths"]["/metrics"] = {
        "get": {
            "operationId": "prometheusMetrics",
            "summary": "Figures for Prometheus",
            "description": "What this host's processes counted for the key's project, in Prometheus' text format.",
            "tags": ["metrics"],
            "security": KEY_SECURITY,
            "parameters": [],
            "responses": {
                "200": {"description": "The figures.", "headers": REQUEST_ID, "content": figures},
                **failures((401, 403, 405, 503), _OTHERWISE),
            },
        }
    }
    return result
