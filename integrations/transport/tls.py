from __future__ import annotations

import ssl


def client_context() -> ssl.SSLContext:
    """Checks chain and host name. Loading the authorities takes milliseconds, so a worker makes one context and shares
    it."""
    context = ssl.create_default_context()
    # HTTP/1.1 is the only offered protocol, since some servers would choose HTTP/2, which neither transport speaks.
    context.set_alpn_protocols(["http/1.1"])
    return context
