"""Settings of telemetry: limits of OTLP requests, retention, and the gateway's own spans."""

from __future__ import annotations

from config import env

# The maximum size after decompression in bytes; OTLP's own default.
OTLP_BODY_BYTES = env.integer("OTLP_BODY_BYTES", 64 * 1024 * 1024, minimum=1024)
# Span attributes that name a session besides gen_ai.session_id and llm.session_id, such as gen_ai.conversation.id.
OTLP_SESSION_ATTRIBUTES = env.strings("OTLP_SESSION_ATTRIBUTES", [])
# OTLP posts within this many seconds share one insert, because ClickHouse has to merge every insert.
OTLP_WINDOW_SECONDS = env.number("OTLP_WINDOW_SECONDS", 0.25, minimum=0.0, maximum=5.0)
TELEMETRY_RETENTION_DAYS = env.integer("TELEMETRY_RETENTION_DAYS", 30, minimum=1, maximum=3650)

GATEWAY_SPANS = env.boolean("GATEWAY_SPANS", True)
