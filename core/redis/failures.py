from __future__ import annotations

import ssl
from collections.abc import Iterator

import redis
from redis.exceptions import RedisClusterException

# What a client raises while Redis does not answer or refuses; time limits of asyncio are OSErrors. What redis-py raises
# about a cluster is no RedisError.
REDIS_ERRORS = (redis.RedisError, RedisClusterException, OSError)

_OTHER_HOST = 62  # X509_V_ERR_HOSTNAME_MISMATCH, and 64 for an IP address (openssl/x509_vfy.h).
_OTHER_ADDRESS = 64


def reason(error: BaseException) -> str:
    """Returns words for what an operator can fix, else the name of the error. Contains no secret."""
    cause = error.__cause__ if isinstance(error, RedisClusterException) else None
    return _permanent(error) or type(cause or error).__name__


def is_permanent(error: BaseException) -> bool:
    return bool(_permanent(error))


def _permanent(error: BaseException) -> str:
    for cause in _chain(error):
        if isinstance(cause, ssl.SSLError):
            return _of_tls(cause)
        if isinstance(cause, redis.AuthenticationError):
            return "the user name or the password is wrong or missing"
        if isinstance(cause, redis.exceptions.NoPermissionError):
            return "the user may not do what is needed"
        if isinstance(cause, FileNotFoundError | PermissionError) and cause.filename is None:
            return "a file that the address names, such as ssl_ca_certs, cannot be read"
    return ""


def _of_tls(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        if error.verify_code in (_OTHER_HOST, _OTHER_ADDRESS):
            return "the server's certificate is for another host name than the address has"
        return f"the server's certificate is not trusted ({error.verify_message}): name its authority by ssl_ca_certs"
    # OpenSSL's name of the failure, which errors of Python's own do not have.
    code = getattr(error, "reason", None) or type(error).__name__
    if code == "WRONG_VERSION_NUMBER":
        return "the server does not speak TLS at this address"
    if "CERTIFICATE_REQUIRED" in code:
        return "the server asks for a client's certificate: see ssl_certfile and ssl_keyfile"
    return f"TLS failed ({code})"


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__
