"""Logs go to standard error, one event a line; prompts, completions and keys never enter them."""

from __future__ import annotations

import logging

from config import env

_LEVEL = env.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))


def _without_needless_traceback(record: logging.LogRecord) -> bool:
    """Whoever sends a suspicious request needs no key for it: it costs one line. No record is left out."""
    if record.name.startswith("django.security"):
        record.exc_info = None
    return True


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s", "datefmt": "%Y-%m-%dT%H:%M:%S%z"},
    },
    "filters": {"short": {"()": "django.utils.log.CallbackFilter", "callback": _without_needless_traceback}},
    "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "line", "filters": ["short"]}},
    "root": {"handlers": ["stderr"], "level": _LEVEL},
    "loggers": {
        # Access lines would hold paths and query strings of every request; the request log is in ClickHouse.
        "uvicorn.access": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
        # Lines with the name that was tried, which may be a password in the wrong field; `core.logins` says enough.
        "axes": {"level": "ERROR"},
        # A traceback for every failed connection; the query layer reports the same in one line.
        "clickhouse_driver": {"level": "CRITICAL"},
        # In detail they write down requests with their headers, and those hold providers' keys.
        "boto3": {"level": "INFO"},
        "botocore": {"level": "INFO"},
        "google.auth": {"level": "INFO"},
        "urllib3": {"level": "INFO"},
        # Three lines for every message of a client; `agent.mcp` writes one for every call of a tool.
        "mcp": {"level": "WARNING"},
    },
}
