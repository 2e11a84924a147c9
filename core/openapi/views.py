"""The document and the two pages that show it. Open to all: it holds nothing that is not in the product's manual."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from django.http import HttpRequest, HttpResponseBase
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView, SpectacularRedocView, SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response
from typing_extensions import override

# Nothing is fetched from elsewhere, whatever the pages' scripts would like to.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; font-src 'self';"
    " connect-src 'self'; worker-src 'self' blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    """Made once a process: it differs with the code alone."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]  # of the package
    made: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return made


class DocumentView(SpectacularAPIView):
    """YAML, or JSON for those who accept it or say `?format=json`."""

    @override
    def _get_schema_response(self, request: Request) -> Response:
        return Response(document())


class _Page:
    def dispatch(self, request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        response: HttpResponseBase = super().dispatch(request, *args, **kwargs)  # type: ignore[misc]  # of the view
        response.headers["Content-Security-Policy"] = _POLICY
        return response


class SwaggerView(_Page, SpectacularSwaggerSplitView):
    url_name = "openapi"
    title = "Prompt Gateway: Swagger UI"


class RedocView(_Page, SpectacularRedocView):
    url_name = "openapi"
    template_name = "core/redoc.html"
    title = "Prompt Gateway: ReDoc"
