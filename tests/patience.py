"""How long a test waits for what has to happen: it matters only when the test fails.

Tests share two cores with others, so a wait proves that something happens, never how fast. What the specification
promises in seconds is measured by `benchmarks/propagation.py`.
"""

from __future__ import annotations

PATIENCE_SECONDS = 30.0
