from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from analytics.clickhouse.engine.errors import EngineError

_NOT_IMPLEMENTED = 48
_BAD_ARGUMENTS = 36

_IDENTIFIER = r'(?:`(?:[^`\\]|\\.)+`|"(?:[^"\\]|\\.)+"|[A-Za-z_]\w*)'
_SKIPPED = r"(?:\s|--[^\n]*(?:\n|\Z)|/\*.*?\*/)*"
_WORD = re.compile(_SKIPPED + r"\(*\s*([A-Za-z]+)", re.DOTALL)
_INSERT = re.compile(
    _SKIPPED
    + rf"INSERT\s+INTO\s+(?:TABLE\s+)?(?P<table>{_IDENTIFIER}(?:\s*\.\s*{_IDENTIFIER})?)\s*"
    + r"(?:\((?P<columns>[^()]*)\)\s*)?(?:SETTINGS\s+(?P<settings>.+?)\s+)?(?:VALUES|FORMAT\s+\w+)\s*;?\s*\Z",
    re.DOTALL | re.IGNORECASE,
)
# The name of a column of a Nested type has a dot in it.
_COLUMN = re.compile(rf"\s*({_IDENTIFIER}(?:\s*\.\s*{_IDENTIFIER})?)\s*(?:,|\Z)")
_PART = re.compile(_IDENTIFIER)
_SETTING_NAME = re.compile(r"[A-Za-z_]\w*\Z")
# A FORMAT clause would replace the Native format, by which the answer is taken apart.
_FOREIGN_OUTPUT = re.compile(r"\b(?:FORMAT\s+\w+|INTO\s+OUTFILE\b.*)\s*;?\s*\Z", re.IGNORECASE | re.DOTALL)
_ESCAPES = {"b": "\b", "f": "\f", "r": "\r", "n": "\n", "t": "\t", "0": "\0", "a": "\a", "v": "\v"}
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)

_READS = frozenset({"SELECT", "WITH", "SHOW", "DESCRIBE", "DESC", "EXPLAIN", "EXISTS", "FROM", "VALUES"})
_STICKY = frozenset({"USE", "SET"})


@dataclass(frozen=True)
class InsertTarget:
    """An INSERT whose rows follow as data blocks. `columns` is empty if the statement names none."""

    table: str
    columns: tuple[str, ...]
    settings: str


def first_word(text: str) -> str:
    match = _WORD.match(text)
    return match.group(1).upper() if match else ""


def is_read(text: str) -> bool:
    return first_word(text) in _READS


def is_select(text: str) -> bool:
    return first_word(text) in {"SELECT", "WITH", "FROM"}


def is_sticky(text: str) -> bool:
    """A sticky statement changes the session, so this client's later queries must repeat it."""
    return first_word(text) in _STICKY


def check_output(text: str) -> None:
    """Raises EngineError for output that this engine cannot send: FORMAT, INTO OUTFILE, WITH TOTALS."""
    if _FOREIGN_OUTPUT.search(text):
        raise EngineError(_NOT_IMPLEMENTED, "FORMAT and INTO OUTFILE are not for the native protocol")
    if re.search(r"\bWITH\s+TOTALS\b", text, re.IGNORECASE):
        raise EngineError(_NOT_IMPLEMENTED, "WITH TOTALS is not available in the embedded engine; use GROUPING SETS")


def insert_target(text: str) -> InsertTarget | None:
    match = _INSERT.match(text)
    if match is None:
        return None
    listed = match.group("columns") or ""
    names = tuple(_column_name(found.group(1)) for found in _COLUMN.finditer(listed))
    return InsertTarget(match.group("table"), names, match.group("settings") or "")


def _column_name(written: str) -> str:
    return ".".join(_unquote_identifier(part) for part in _PART.findall(written))


def _unquote_identifier(identifier: str) -> str:
    if identifier[0] in '`"':
        return _ESCAPE.sub(r"\1", identifier[1:-1])
    return identifier


def set_statement(settings: Mapping[str, str]) -> str:
    for name in settings:
        if not _SETTING_NAME.match(name):
            raise EngineError(_BAD_ARGUMENTS, f"{name!r} is not the name of a setting")
    return "SET " + ", ".join(f"{name} = {quote_string(value)}" for name, value in settings.items())


def quote_string(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def parameter_text(wire: str) -> str:
    """Returns a parameter as chDB reads it.

    The client escapes twice: for the quotes, which this removes, and for the value's text form, which chDB undoes.
    """
    if len(wire) < 2 or not (wire[0] == wire[-1] == "'"):
        return wire
    return _ESCAPE.sub(lambda match: _ESCAPES.get(match.group(1), match.group(1)), wire[1:-1])
