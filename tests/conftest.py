from __future__ import annotations

from tests.recordings import EXPECTED, OPENAI_DIALECT, SHARED_DIR, missing_recordings


def pytest_report_header() -> str:
    missing, expected = missing_recordings(), EXPECTED[OPENAI_DIALECT]
    return f"recordings: {expected - missing} of {expected} in {SHARED_DIR}" + (
        f", {missing} not found and not replayed" if missing else ""
    )
