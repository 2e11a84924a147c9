from __future__ import annotations

from celery.schedules import crontab

from config import env
from config.settings.celery import CELERY_BEAT_SCHEDULE

# Whether integrations may use the role of this machine in place of a key: those of every project may then.
AMBIENT_CREDENTIALS = env.boolean("AMBIENT_CREDENTIALS", False)
MEDIA_MAX_BYTES = env.integer("MEDIA_MAX_BYTES", 20 * 1024 * 1024, minimum=1024)
MEDIA_REQUEST_BYTES = env.integer("MEDIA_REQUEST_BYTES", 50 * 1024 * 1024, minimum=1024)
MEDIA_SECONDS = env.number("MEDIA_SECONDS", 20.0, minimum=0.1, maximum=600)

# Clients choose these addresses, and private ones would let them read services that only the gateway may reach.
ALLOW_PRIVATE_MEDIA = env.boolean("ALLOW_PRIVATE_MEDIA", False)

# Maps each catalog to its address. A catalog without an address keeps the prices that were read last.
PRICING_CATALOGS = {
    "catalog_a": env.url("PRICING_CATALOG_A_URL", schemes=("http", "https"))
    or "https://raw.githubusercontent.com/BerriAI/litellm/main/model_prices_and_context_window.json",
    "catalog_b": env.url("PRICING_CATALOG_B_URL", schemes=("http", "https")) or "https://models.dev/api.json",
}
# The time limit for each catalog in seconds, from the first byte sent to the last one received.
PRICING_FETCH_SECONDS = env.number("PRICING_FETCH_SECONDS", 30.0, minimum=0.1, maximum=120)
PRICING_MAX_BYTES = env.integer("PRICING_MAX_BYTES", 32 * 1024 * 1024, minimum=1024)

if env.boolean("PRICING_SYNC", True):
    CELERY_BEAT_SCHEDULE["sync-pricing"] = {
        "task": "integrations.sync_pricing",
        # Syncs can be frequent, because a catalog that has not changed costs one request without a body.
        "schedule": crontab(hour="*/6", minute="41"),
        "options": {"expires": 3600},
    }
