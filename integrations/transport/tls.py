"""Whom we trust: the system's authorities, or those of SSL_CERT_FILE and SSL_CERT_DIR."""

from __future__ import annotations

import ssl


def client_context() -> ssl.SSLContext:
    """Checks chain and host name. Loading the authorities takes milliseconds, so a worker makes one and shares it."""
    context = ssl.create_default_context()
    # Without this some servers choose HTTP/2, which neither transport speaks.
    context.set_alpn_protocols(["http/1.1"])
    return context
