"""The path that Channels serves past Django."""

from __future__ import annotations

from agent.consumers import ChatConsumer
from gateway.routing import route

http_urlpatterns = [route(r"^api/agent/chat/?$", ChatConsumer.as_asgi())]
