from __future__ import annotations

from agent.consumers import ChatConsumer
from agent.mcp.endpoint import McpConsumer
from gateway.routing import route

http_urlpatterns = [
    route(r"^api/agent/chat/?$", ChatConsumer.as_asgi()),
    route(r"^api/agent/mcp/?$", McpConsumer.as_asgi()),
]
