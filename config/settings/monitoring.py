from __future__ import annotations

from config import env
from config.json_log import HOST_NAME as HOST_NAME

# Metrics have no port of their own when this is unset; 0 picks a free port.
METRICS_PORT = env.integer("METRICS_PORT", 0, minimum=0, maximum=65535) if env.text("METRICS_PORT") else None
METRICS_HOST = env.text("METRICS_HOST", "127.0.0.1")

DISK_LOW_BYTES = env.integer("DISK_LOW_BYTES", 1024**3, minimum=0)
SHIPPING_BEHIND_SECONDS = env.number("SHIPPING_BEHIND_SECONDS", 300.0, minimum=1.0, maximum=86_400)

OPERATOR_ALERT_WEBHOOK_URL = env.url("OPERATOR_ALERT_WEBHOOK_URL", schemes=("http", "https")) or ""
OPERATOR_ALERT_WEBHOOK_SECRET = env.secret("OPERATOR_ALERT_WEBHOOK_SECRET") or ""
# The seconds that an alarm's condition has to be over before operators are notified that it ended.
OPERATOR_ALERT_CLEAR_SECONDS = env.number("OPERATOR_ALERT_CLEAR_SECONDS", 60.0, minimum=0.1, maximum=86_400)
OPERATOR_ALERT_EMAILS = env.strings("OPERATOR_ALERT_EMAILS", [])

EMAIL_HOST = env.text("EMAIL_HOST")
EMAIL_PORT = env.integer("EMAIL_PORT", 587, minimum=1, maximum=65535)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.secret("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_SSL = env.boolean("EMAIL_USE_SSL", False)
EMAIL_USE_TLS = env.boolean("EMAIL_USE_TLS", EMAIL_PORT == 587 and not EMAIL_USE_SSL)
EMAIL_TIMEOUT = env.integer("EMAIL_TIMEOUT", 10, minimum=1, maximum=120)
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "prompt-gateway@localhost")
