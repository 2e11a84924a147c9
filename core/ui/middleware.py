from __future__ import annotations

from django.http import HttpRequest
from django.utils import timezone
from django.utils.deprecation import MiddlewareMixin

from core.ui.choices import zone_of
from core.ui.navigation import address_if_there


class TimeZoneMiddleware(MiddlewareMixin):
    def process_request(self, request: HttpRequest) -> None:
        root = address_if_there("index")
        if root and request.path.startswith(root):
            timezone.activate(zone_of(request))
        else:
            timezone.deactivate()
