"""The time limit of tests that wait for an event; it matters only for a test that fails.

Tests share two cores with others, so a wait proves that something happens, never how fast. Promises in seconds are
measured by `benchmarks/propagation.py`.
"""

from __future__ import annotations

PATIENCE_SECONDS = 30.0
