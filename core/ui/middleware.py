"""The middleware that shows the times of the admin's pages in the reader's time zone."""

from __future__ import annotations

from django.http import HttpRequest
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin

from core.ui.choices import zone_of
from core.ui.navigation import address_if_there


class TimeZoneMiddleware(MiddlewareMixin):
    """Comes behind the middleware of sessions. The API speaks UTC whoever calls it."""

    def process_request(self, request: HttpRequest) -> None:
        root = address_if_there("index")
        if root and request.path.startswith(root):
            timezone.activate(zone_of(request))
        else:
            timezone.deactivate()
