"""OTLP/HTTP, below `api/otlp/`. Exporters add `v1/traces` to their endpoint, some of them with a slash behind it."""

from __future__ import annotations

from django.urls import re_path

from analytics.views import otlp

urlpatterns = [
    re_path(r"^v1/traces/?$", otlp.traces),
    re_path(r"^v1/logs/?$", otlp.logs),
    re_path(r"^v1/metrics/?$", otlp.metrics),
]
