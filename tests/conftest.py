from __future__ import annotations

from tests.recordings import EXPECTED, SHARED_DIR, missing_recordings


def pytest_report_header() -> str:
    missing, expected = missing_recordings(), sum(EXPECTED.values())
    return f"recordings: {expected - missing} of {expected} in {SHARED_DIR}" + (
        f", {missing} not found and not replayed" if missing else ""
    )
