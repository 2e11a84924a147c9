"""Limits on files that requests name by address: their size, the time to fetch them, the hosts they may come from."""

from __future__ import annotations

from config import env

MEDIA_MAX_BYTES = env.integer("MEDIA_MAX_BYTES", 20 * 1024 * 1024, minimum=1024)
MEDIA_REQUEST_BYTES = env.integer("MEDIA_REQUEST_BYTES", 50 * 1024 * 1024, minimum=1024)
MEDIA_SECONDS = env.number("MEDIA_SECONDS", 20.0, minimum=0.1, maximum=600)

# Clients choose these addresses, and private ones would let them read services that only the gateway may reach.
ALLOW_PRIVATE_MEDIA = env.boolean("ALLOW_PRIVATE_MEDIA", False)
