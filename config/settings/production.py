"""For a service that others reach, as by `compose.yaml`. `serve` speaks plain HTTP: TLS is for a proxy before it."""

from __future__ import annotations

from django.core.exceptions import ImproperlyConfigured

from config import env
from config.settings.base import *  # noqa: F403
from config.settings.base import TRUSTED_PROXIES

# Signing in over plain HTTP on purpose: in a closed network, or on the machine itself.
INSECURE_HTTP = env.boolean("INSECURE_HTTP", False)

if not INSECURE_HTTP and not TRUSTED_PROXIES:
    raise ImproperlyConfigured(
        "config.settings.production gives its cookies to HTTPS only, so nobody could sign in. Set the environment "
        "variable TRUSTED_PROXIES to the number of proxies before the service that speak TLS to its users (usually 1), "
        "or INSECURE_HTTP=1 to sign in over plain HTTP on purpose."
    )

SESSION_COOKIE_SECURE = not INSECURE_HTTP
CSRF_COOKIE_SECURE = not INSECURE_HTTP
# Sent in answers that went over TLS; a browser then asks for this host over TLS alone, so long.
SECURE_HSTS_SECONDS = 0 if INSECURE_HTTP else env.integer("HSTS_SECONDS", 31_536_000, minimum=0)

# A model that answers to everybody is for trying things out.
SANDBOX = env.boolean("SANDBOX", False)
