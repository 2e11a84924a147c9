"""Logging to standard error, one event a line, as text or as JSON (LOG_FORMAT). Prompts, completions and keys are never
logged."""

from __future__ import annotations

import asyncio
import logging

from config import env, json_log

_LEVEL = env.choice("LOG_LEVEL", "INFO", ("DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"))


def _without_needless_traceback(record: logging.LogRecord) -> bool:
    """Removes the traceback of Django's security warnings, which anyone can cause, and of requests that the end of the
    drain cuts off; the line itself stays."""
    is_cut_off = record.exc_info is not None and isinstance(record.exc_info[1], asyncio.CancelledError)
    if is_cut_off or record.name.startswith("django.security"):
        record.exc_info = None
    return True


LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "formatters": {
        "line": {"format": "%(asctime)s %(levelname)s %(name)s %(message)s", "datefmt": "%Y-%m-%dT%H:%M:%S%z"},
        "json": {"()": "config.json_log.JsonFormatter"},
    },
    "filters": {"short": {"()": "django.utils.log.CallbackFilter", "callback": _without_needless_traceback}},
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "json" if json_log.IS_ON else "line",
            "filters": ["short"],
        }
    },
    "root": {"handlers": ["stderr"], "level": _LEVEL},
    "loggers": {
        # Access logs would hold paths and query strings of every request; the request log is in ClickHouse.
        "uvicorn.access": {"level": "WARNING"},
        "django.request": {"level": "ERROR"},
        # django-axes logs the user name that was tried, which may be a password in the wrong field.
        "axes": {"level": "ERROR"},
        # The driver logs a traceback for every failed connection; the query layer reports the same failure in one line.
        "clickhouse_driver": {"level": "CRITICAL"},
        # At debug level these libraries log requests with their headers, which hold providers' keys.
        "boto3": {"level": "INFO"},
        "botocore": {"level": "INFO"},
        "google.auth": {"level": "INFO"},
        "urllib3": {"level": "INFO"},
        # At DEBUG it logs the code verifiers of sign-ins.
        "authlib": {"level": "INFO"},
        # The MCP library logs three lines for every message of a client; `agent.mcp` logs one for each call of a tool.
        "mcp": {"level": "WARNING"},
    },
}
