from __future__ import annotations

from typing import Any

from config.version import VERSION

_DESCRIPTION = """\
An LLM gateway and prompt hub.

**Management calls** carry `Authorization: Bearer <API key>`, a key with scope `manage`, and `X-Project-Id`, the key's
own project. Signed-in staff may use the session of the admin instead of a key, with its CSRF token. A `project_id` in
path, query or body is optional unless it is marked as required, and has to be that of the header.

**Gateway calls** carry a key with scope `gateway`; **OTLP exports** one with that scope or
`telemetry:write`. `X-Project-Id` is optional there. The bodies of gateway calls are those of the vendors' APIs, which
each call links; described are the gateway's own fields and those that it acts on.

Every failure is `{"error": {"message", "type", "code"}}`, with `details` (field → messages) where a management call is
wrong in a field. Lists are `{"count", "next", "previous", "results"}`. Times are ISO 8601 in UTC, prices decimal
strings, measured money and rates numbers. Every response has an `x-request-id`.
"""

SPECTACULAR_SETTINGS: dict[str, Any] = {
    "TITLE": "Prompt Gateway",
    "DESCRIPTION": _DESCRIPTION,
    "VERSION": VERSION,
    "OAS_VERSION": "3.1.1",
    "SERVERS": [{"url": "/", "description": "This service"}],
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],
    "SCHEMA_PATH_PREFIX": "/api/",
    "COMPONENT_SPLIT_REQUEST": True,
    "PATH_CONVERTER_OVERRIDES": {"slashed": str},
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
    # The badge of the schema validator would be fetched from its vendor's server.
    "SWAGGER_UI_SETTINGS": {"deepLinking": True, "validatorUrl": None, "tryItOutEnabled": True},
    "POSTPROCESSING_HOOKS": [
        "analytics.openapi.add_exports",
        "gateway.openapi.add_gateway",
        "gateway.prompt_fetch.openapi.add_prompts",
        "agent.openapi.add_agent",
        "config.monitor.openapi.add_metrics",
        "core.openapi.shapes.add_shapes",
        "gateway.openapi.add_bounds",
        "core.openapi.document.finish",
    ],
}
