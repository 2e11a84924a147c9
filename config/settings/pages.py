from __future__ import annotations

from datetime import timedelta

from csp.constants import NONE, SELF

from config import env

# Pages load and run only the service's own files, whatever a model or a client wrote. Exceptions are set in the view
# that needs them (`core.openapi.views`).
CONTENT_SECURITY_POLICY = {
    "DIRECTIVES": {
        "default-src": [NONE],
        "script-src": [SELF],
        "style-src": [SELF],
        "img-src": [SELF],
        "font-src": [SELF],
        "connect-src": [SELF],
        "form-action": [SELF],
        "base-uri": [NONE],
        "frame-ancestors": [NONE],
    }
}
X_FRAME_OPTIONS = "DENY"

# The number of the operator's proxies in front of the service: that many entries at the end of X-Forwarded-For are
# theirs, and X-Forwarded-Proto says how the client connected. With 0 a client could write both headers, so neither is
# read.
TRUSTED_PROXIES = env.integer("TRUSTED_PROXIES", 0, minimum=0, maximum=10)
if TRUSTED_PROXIES:
    SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

# Where a login ends that names no page of this service in `next`; Django's default does not exist here.
LOGIN_REDIRECT_URL = "admin:index"

# Failed logins count by name and address together, so nobody can lock out a person elsewhere, or everybody at an
# address. The counts are in the database, which a login needs anyway, and expire after the cool-off.
AXES_FAILURE_LIMIT = env.integer("LOGIN_FAILURES", 5, minimum=1, maximum=1000)
AXES_COOLOFF_TIME = timedelta(seconds=env.integer("LOGIN_COOL_OFF_SECONDS", 900, minimum=1, maximum=86_400))
AXES_LOCKOUT_PARAMETERS = [["username", "ip_address"]]
AXES_RESET_COOL_OFF_ON_FAILURE_DURING_LOCKOUT = False
AXES_RESET_ON_SUCCESS = True
# The parameters of a failed login that are not stored with it; a password never is.
AXES_SENSITIVE_PARAMETERS = ["username", "ip_address", "code"]
AXES_CLIENT_IP_CALLABLE = "core.http.logins.client_address"
AXES_LOCKOUT_CALLABLE = "core.http.logins.locked_out"
AXES_DISABLE_ACCESS_LOG = True
AXES_ENABLE_ADMIN = False
AXES_VERBOSE = False
