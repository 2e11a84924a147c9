"""The ASGI application: Channels routes the gateway and the agent's chats past Django, Django serves the rest."""

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
from agent.running import with_last_words  # noqa: E402
from config.monitor.pages import metrics  # noqa: E402
from core.http.arrival import with_arrival  # noqa: E402
from core.http.bodies import with_bounded_body  # noqa: E402
from gateway.http.cors import with_cors  # noqa: E402
from gateway.routing import DIRECT, http_urlpatterns, route  # noqa: E402
from gateway.worker.lifespan import lifespan  # noqa: E402

admin.autodiscover()


async def no_websocket(scope: Any, receive: Any, send: Any) -> None:
    """Refuses the handshake (403). A worker of `serve` does so before; other servers ask the application."""
    await receive()
    await send({"type": "websocket.close"})


# Each path of Django refuses what is above its own limit.
_MAX_BODY_BYTES = max(settings.MANAGEMENT_BODY_BYTES, settings.OTLP_BODY_BYTES)
router = ProtocolTypeRouter(
    {
        "websocket": no_websocket,
        "http": URLRouter(
            [
                *http_urlpatterns,
                *agent_urlpatterns,
                route(r"^metrics$", metrics),
                route(r"", with_arrival(with_bounded_body(django_application, _MAX_BODY_BYTES))),
            ]
        ),
        "lifespan": with_last_words(lifespan),
    }
)


class _Application:
    """The ASGI application. `direct` holds the endpoints, by the bytes of their paths, to which a server may hand POST
    requests itself (`config.web.direct`)."""

    direct = {path.encode(): endpoint for path, endpoint in DIRECT.items()}

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Hands requests of models straight to the gateway: Channels' router takes as long as decoding a request."""
        if scope["type"] == "http" and scope["path"] in DIRECT and not scope.get("root_path"):
            await DIRECT[scope["path"]](scope, receive, send)
        else:
            await router(scope, receive, send)


_ORIGINS = settings.CORS_ALLOWED_ORIGINS
# With origins, every request passes the answers to browsers first, and a server finds nothing to hand over itself.
application: Any = with_cors(_Application(), _ORIGINS) if _ORIGINS else _Application()
