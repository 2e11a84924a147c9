from __future__ import annotations

import re

UNKNOWN_EXCEPTION = 1002
QUERY_WAS_CANCELLED = 394

_CODED = re.compile(r"Code: (\d+)\. (.*)\Z", re.DOTALL)


class EngineError(Exception):
    """A failure with a code of ClickHouse's `ErrorCodes.cpp`. The client sees the message."""

    def __init__(self, code: int, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message

    @classmethod
    def of_chdb(cls, error: Exception) -> EngineError:
        """Reads the code from chDB's text: "[Streaming query failed: ]Code: 60. DB::Exception: … (UNKNOWN_TABLE)"."""
        match = _CODED.search(str(error))
        if match is None:
            return cls(UNKNOWN_EXCEPTION, f"DB::Exception: {error}")
        return cls(int(match.group(1)), match.group(2))
