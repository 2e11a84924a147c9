"""The log as JSON lines (LOG_FORMAT=json): each line of each process is one object, whoever wrote it.

    {"ts": "2026-11-26T18:00:00.000000+00:00", "level": "WARNING", "logger": "config.supervisor", "role": "supervisor",
     "host": "gateway-a", "pid": 17, "message": "child.restarted role=web-1 exit_code=-9 after_seconds=0.1",
     "event": "child.restarted", "fields": {"role": "web-1", "after_seconds": 0.1}}

A record has `exception` with the traceback where there is one. What other programs and Python itself write (Redis, the
analytics engine, warnings, uncaught exceptions) is wrapped: the line is the `message`.
"""

from __future__ import annotations

import atexit
import io
import json
import logging
import math
import os
import re
import socket
import sys
import threading
from pathlib import Path
from types import TracebackType
from typing import Any

from pythonjsonlogger.json import JsonFormatter as LibraryFormatter

from config import env

IS_ON = env.choice("LOG_FORMAT", "text", ("text", "json")) == "json"

# The tables of hosts and of leases keep it, with what tells processes of a host apart.
HOST_NAME = env.matching("HOST_NAME", socket.gethostname(), r".{1,200}", "at most 200 characters in one line")
_EVENT = re.compile(r"\w+\.\w+\b")
# A conversion of the `%` operator, with the name before it: `role=%s`, `after_seconds=%.1f`.
_CONVERSION = re.compile(r"(?:(\w+)=)?%(?:%|[-#0 +]*[\d.]*[a-zA-Z])")

# The name of this process in its lines; the fork server gives each child the child's own.
role = Path(sys.argv[0]).stem if len(sys.argv) < 2 or not sys.argv[0].endswith("manage.py") else sys.argv[1]


class JsonFormatter(LibraryFormatter):
    def __init__(self) -> None:
        names = {"levelname": "level", "name": "logger", "process": "pid", "exc_info": "exception"}
        super().__init__(
            ["levelname", "name", "process", "message"],
            rename_fields=names,
            static_fields={"host": HOST_NAME},
            timestamp="ts",
        )

    def add_fields(self, log_data: dict[str, Any], record: logging.LogRecord, message_dict: dict[str, Any]) -> None:
        super().add_fields(log_data, record, message_dict)
        log_data.setdefault("role", role)
        if event := _EVENT.match(str(record.msg)):
            log_data["event"] = event[0]
        if fields := _named(str(record.msg), record.args):
            log_data["fields"] = fields


_FORMATTER = JsonFormatter()


class JsonLines(io.TextIOWrapper):
    def __init__(self, stream: Any, level: int) -> None:
        super().__init__(stream.buffer, encoding="utf-8", errors="backslashreplace", line_buffering=True)
        self._level = level
        self._rest = ""
        atexit.register(self._end)

    def _end(self) -> None:
        if self._rest:
            self.write("\n")

    def write(self, text: str) -> int:
        *lines, self._rest = (self._rest + text).split("\n")
        super().write("".join(f"{as_json(line, role, self._level)}\n" for line in lines if line))
        return len(text)


def as_json(line: str, writer: str, level: int = logging.WARNING) -> str:
    if line.startswith("{"):
        try:
            json.loads(line)
        except ValueError:
            pass
        else:
            return line
    record = logging.LogRecord(writer, level, "", 0, line.rstrip("\r"), None, None)
    if writer != role:
        record.role, record.process = writer, None
    return _FORMATTER.format(record)


def begin() -> None:
    if isinstance(sys.stderr, io.TextIOWrapper) and not sys.stderr.isatty():
        sys.stderr = JsonLines(sys.stderr, logging.WARNING)
    report = sys.excepthook

    def report_error(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
        if issubclass(kind, env.InvalidVariable):
            report(kind, error, traceback)  # One line without a traceback.
        else:
            _report("process.failed", error)

    sys.excepthook = report_error
    threading.excepthook = lambda failure: _report("thread.failed", failure.exc_value)
    sys.unraisablehook = lambda failure: _report("error.unraisable", failure.exc_value)


def _report(event: str, error: BaseException | None) -> None:
    """Writes an uncaught exception without logging, which may not be set up or may have failed."""
    told = None if error is None else (type(error), error, error.__traceback__)
    line = _FORMATTER.format(logging.LogRecord("config", logging.CRITICAL, "", 0, event, None, told))
    os.write(2, f"{line}\n".encode())


def _named(template: str, arguments: Any) -> dict[str, Any]:
    if not isinstance(arguments, tuple):
        return {}
    names = [found[1] for found in _CONVERSION.finditer(template) if not found[0].endswith("%%")]
    return {name: _plain(value) for name, value in zip(names, arguments, strict=False) if name}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return str(value)
