"""Channels routes the gateway and the agent's chats past Django, and Django serves the rest."""

from __future__ import annotations

import os
from typing import Any

from django.core.asgi import get_asgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.base")
django_application = get_asgi_application()

# Models can be imported only after the line above; a worker imports the pages of the admin before its first request.
from channels.routing import ProtocolTypeRouter, URLRouter  # noqa: E402
from django.conf import settings  # noqa: E402
from django.contrib import admin  # noqa: E402

from agent.routing import http_urlpatterns as agent_urlpatterns  # noqa: E402
from agent.worker.running import with_last_words  # noqa: E402
from config.monitor.pages import Metrics  # noqa: E402
from config.web.websockets import NoWebSockets  # noqa: E402
from core.http.arrival import with_arrival  # noqa: E402
from core.http.bodies import with_bounded_body  # noqa: E402
from gateway.http.cors import with_cors  # noqa: E402
from gateway.routing import DIRECT_PATTERNS, direct_consumers, http_urlpatterns, route  # noqa: E402
from gateway.worker.lifespan import lifespan  # noqa: E402

admin.autodiscover()


# Each path of Django refuses what is above its own limit.
_MAX_BODY_BYTES = max(settings.MANAGEMENT_BODY_BYTES, settings.OTLP_BODY_BYTES, settings.DATASET_FILE_BYTES)
_WITHOUT_DJANGO = [*http_urlpatterns, *agent_urlpatterns, route(r"^metrics$", Metrics.as_asgi())]
_BY_DJANGO = route(r"", with_arrival(with_bounded_body(django_application, _MAX_BODY_BYTES)))
http = URLRouter([*_WITHOUT_DJANGO, _BY_DJANGO])
router = ProtocolTypeRouter(
    {"websocket": NoWebSockets(_WITHOUT_DJANGO), "http": http, "lifespan": with_last_words(lifespan)}
)
# A web worker hands POST requests to these consumers itself (`config.web.direct`), which saves the 2 to 7 µs that the
# router takes. With origins it finds none: every request passes the answers to browsers first.
router.direct = direct_consumers(http.routes)
router.direct_patterns = DIRECT_PATTERNS
_ORIGINS = settings.CORS_ALLOWED_ORIGINS
application: Any = with_cors(router, _ORIGINS) if _ORIGINS else router
