from __future__ import annotations

from django.urls import path

from core.openapi.views import DocumentView, RedocView, SwaggerView, redoc_script

urlpatterns = [
    path("schema/", DocumentView.as_view(), name="openapi"),
    path("docs/", SwaggerView.as_view(), name="openapi-docs"),
    path("redoc/script.js", redoc_script, name="redoc-script"),
    path("redoc/", RedocView.as_view(), name="openapi-redoc"),
]
