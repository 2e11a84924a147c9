"""Settings of outgoing mail, for alerts. Without EMAIL_HOST no mail is sent."""

from __future__ import annotations

from config import env

EMAIL_HOST = env.text("EMAIL_HOST")
EMAIL_PORT = env.integer("EMAIL_PORT", 587, minimum=1, maximum=65535)
EMAIL_HOST_USER = env.text("EMAIL_HOST_USER")
EMAIL_HOST_PASSWORD = env.secret("EMAIL_HOST_PASSWORD") or ""
EMAIL_USE_SSL = env.boolean("EMAIL_USE_SSL", False)
EMAIL_USE_TLS = env.boolean("EMAIL_USE_TLS", EMAIL_PORT == 587 and not EMAIL_USE_SSL)
EMAIL_TIMEOUT = env.integer("EMAIL_TIMEOUT", 10, minimum=1, maximum=120)
DEFAULT_FROM_EMAIL = env.text("DEFAULT_FROM_EMAIL", "prompt-gateway@localhost")
