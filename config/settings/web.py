from __future__ import annotations

from config import env

HTTP_HEAD_BYTES = env.integer("HTTP_HEAD_BYTES", 64 * 1024, minimum=1024, maximum=16 * 1024 * 1024)
HTTP_HEADERS = env.integer("HTTP_HEADERS", 200, minimum=10, maximum=10_000)
HTTP_URL_BYTES = env.integer("HTTP_URL_BYTES", 16 * 1024, minimum=256, maximum=16 * 1024 * 1024)
HTTP_HEAD_SECONDS = env.number("HTTP_HEAD_SECONDS", 30.0, minimum=0.1, maximum=600)
# The time limit of a management request's body in seconds; the gateway's bodies have GATEWAY_BODY_SECONDS.
MANAGEMENT_BODY_SECONDS = env.number("MANAGEMENT_BODY_SECONDS", 30.0, minimum=0.1, maximum=600)
# The maximum number of connections of one worker. Requests may need a connection to a provider too, so half of the file
# descriptors is a limit as well.
WEB_CONNECTIONS = env.integer("WEB_CONNECTIONS", 4096, minimum=1, maximum=1_000_000)
