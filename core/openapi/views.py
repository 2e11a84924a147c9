from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from typing import Any

from csp.constants import NONE, SELF, UNSAFE_INLINE
from csp.decorators import csp_replace
from django.conf import settings
from django.contrib.staticfiles import finders
from django.http import HttpRequest, HttpResponse
from django.utils.decorators import method_decorator
from drf_spectacular.generators import SchemaGenerator
from drf_spectacular.views import SpectacularAPIView, SpectacularRedocView, SpectacularSwaggerSplitView
from rest_framework.request import Request
from rest_framework.response import Response

# The pages' scripts may load nothing from other hosts; their styles are inline.
_POLICY = {
    **settings.CONTENT_SECURITY_POLICY["DIRECTIVES"],
    "style-src": [SELF, UNSAFE_INLINE],
    "img-src": [SELF, "data:"],
    "font-src": [SELF],
    "worker-src": [SELF, "blob:"],
    "form-action": [NONE],
}
_REDOC = "drf_spectacular_sidecar/redoc/bundles/redoc.standalone.js"
# A logo below the menu is the only file that Redoc loads from its vendor.
_LOGO, _BLANK = b"https://cdn.redoc.ly/redoc/logo-mini.svg", b"data:image/gif;base64,R0lGODlhAQABAAAAACw="


@lru_cache(maxsize=1)
def document() -> dict[str, Any]:
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]  # of the package
    made: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return made


class DocumentView(SpectacularAPIView):
    """The document as YAML, or as JSON for clients that accept it or send `?format=json`."""

    def _get_schema_response(self, request: Request) -> Response:
        return Response(document())


@lru_cache(maxsize=1)
def _redoc_script() -> bytes:
    path = finders.find(_REDOC)
    if path is None:
        raise FileNotFoundError(_REDOC)
    return Path(path).read_bytes().replace(_LOGO, _BLANK)


def redoc_script(request: HttpRequest) -> HttpResponse:
    headers = {"Cache-Control": "max-age=3600"}
    return HttpResponse(_redoc_script(), content_type="text/javascript; charset=utf-8", headers=headers)


@method_decorator(csp_replace(_POLICY), name="dispatch")
class SwaggerView(SpectacularSwaggerSplitView):
    url_name = "openapi"
    title = "Prompt Gateway: Swagger UI"


@method_decorator(csp_replace(_POLICY), name="dispatch")
class RedocView(SpectacularRedocView):
    url_name = "openapi"
    template_name = "core/redoc.html"
    title = "Prompt Gateway: ReDoc"
