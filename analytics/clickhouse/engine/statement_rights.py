"""Refuses statements, by their text, that chDB would run without asking for a grant.

The function `file`, the functions and tables that run programs, INFILE and OUTFILE need no grant. Parsing could be
tricked by text that reads two ways, so a name is refused anywhere, even in a comment or a literal. Statements of this
product never hold one: their values are parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from analytics.clickhouse.engine.errors import EngineError

_ACCESS_DENIED = 497

# These table functions reach no file or host, and read no table that the user may not read.
HARMLESS_TABLE_FUNCTIONS = frozenset({
    "numbers", "numbers_mt", "zeros", "zeros_mt", "values", "sqlstandardvalues", "null", "view", "format",
    "generaterandom", "generateseries", "generate_series",
})  # fmt: skip
TABLE_ENGINES = (
    "MergeTree", "AggregatingMergeTree", "ReplacingMergeTree", "SummingMergeTree", "CollapsingMergeTree", "Memory",
    "Null", "Atomic",
)  # fmt: skip
SYSTEM_TABLES = (
    "backups", "columns", "data_skipping_indices", "databases", "functions", "merges", "mutations", "numbers", "one",
    "parts", "processes", "settings", "table_engines", "table_functions", "tables",
)  # fmt: skip
# These scalar functions reach files, models or other hosts. APPLY takes a function by a parameter too.
_FUNCTIONS = r"file|ai[A-Z]\w*|catboostEvaluate|evalMLMethod|naiveBayes\w*|reverseDNSQuery|showCertificate"
_CLAUSES = r"INFILE|OUTFILE|APPLY"
# White space of any alphabet and quotes may stand between a name and its bracket.
_GAP = r"(?:[^\x21-\x7e]|[`\"])*"
_COMMENT = r"(?:/\*|--|\#)"
_START = r"(?<![A-Za-z0-9_])"
_END = r"(?![A-Za-z0-9_])"

_ANYWHERE = re.compile(
    rf"{_START}(?P<name>(?i:{_CLAUSES})|{_FUNCTIONS}){_END}"
    # A quoted name with an escape in it could be any of these names.
    r"|(?P<escaped>[`\"\u201c][\w\\]*\\[\w\\]*[`\"\u201d])",
    re.ASCII,
)
_ENGINE = re.compile(rf"{_START}ENGINE{_END}(?!\s*=?\s*(?:{'|'.join(TABLE_ENGINES)}){_END})", re.IGNORECASE | re.ASCII)
_DEFINITION = re.compile(rf"{_START}(?:CREATE|ATTACH|REPLACE\s+TABLE){_END}", re.IGNORECASE | re.ASCII)
_SYSTEM_TABLE = re.compile(
    rf"{_START}system{_GAP}(?:{_COMMENT}|\.(?!{_GAP}(?:{'|'.join(SYSTEM_TABLES)}){_END}))", re.IGNORECASE | re.ASCII
)
# A backup to the one disk that the engine's configuration has for backups, and back from it.
_BACKUP = re.compile(
    r"(?:BACKUP DATABASE \w+(?: EXCEPT TABLES [\w., ]+)? TO|RESTORE DATABASE \w+ AS \w+ FROM)"
    r" Disk\('backups', '\w[\w.-]*'\) ASYNC",
    re.ASCII,
)


class StatementRights:
    def __init__(self, table_functions: Iterable[str]) -> None:
        refused = {name.lower() for name in table_functions} - HARMLESS_TABLE_FUNCTIONS
        names = "|".join(sorted(map(re.escape, refused | {"disk"}), key=len, reverse=True))
        self._call = re.compile(rf"{_START}(?P<name>{names}){_GAP}(?:\(|{_COMMENT})", re.IGNORECASE | re.ASCII)

    def check(self, text: str) -> None:
        if _BACKUP.fullmatch(text):
            return
        if found := _ANYWHERE.search(text) or self._call.search(text):
            raise _denied(found.groupdict().get("name") or "an escaped name")
        if _SYSTEM_TABLE.search(text):
            raise _denied("this table of the engine's own")
        if _DEFINITION.search(text) and _ENGINE.search(text):
            raise _denied("this table engine")


def _denied(what: str) -> EngineError:
    return EngineError(_ACCESS_DENIED, f"DB::Exception: Not enough privileges: {what} is not for this engine's user")
