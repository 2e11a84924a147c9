"""Settings of a service that others reach, as in `compose.yaml`. `serve` speaks plain HTTP; a proxy terminates TLS."""

from __future__ import annotations

from config import env
from config.settings.base import *  # noqa: F403
from config.settings.base import TRUSTED_PROXIES

# Allows logins over plain HTTP, in a closed network or on the machine itself.
INSECURE_HTTP = env.boolean("INSECURE_HTTP", False)

if not INSECURE_HTTP and not TRUSTED_PROXIES:
    raise env.InvalidVariable(
        "config.settings.production gives its cookies to HTTPS only, so nobody could sign in. Set the environment "
        "variable TRUSTED_PROXIES to the number of proxies before the service that speak TLS to its users (usually 1), "
        "or INSECURE_HTTP=1 to sign in over plain HTTP on purpose."
    )

SESSION_COOKIE_SECURE = not INSECURE_HTTP
CSRF_COOKIE_SECURE = not INSECURE_HTTP
# The seconds of the HSTS header, which is sent over TLS only: browsers then use TLS for this host for that long.
SECURE_HSTS_SECONDS = 0 if INSECURE_HTTP else env.integer("HSTS_SECONDS", 31_536_000, minimum=0)

# The sandbox answers every request without an account, so it is off in production.
SANDBOX = env.boolean("SANDBOX", False)
