"""Files that requests name by address: how large, how long, from where."""

from __future__ import annotations

from config import env

MEDIA_MAX_BYTES = env.integer("MEDIA_MAX_BYTES", 20 * 1024 * 1024, minimum=1024)
MEDIA_REQUEST_BYTES = env.integer("MEDIA_REQUEST_BYTES", 50 * 1024 * 1024, minimum=1024)
MEDIA_SECONDS = env.number("MEDIA_SECONDS", 20.0, minimum=0.1, maximum=600)

# Clients choose these addresses: on the gateway's own network they could read what only the gateway may.
ALLOW_PRIVATE_MEDIA = env.boolean("ALLOW_PRIVATE_MEDIA", False)
