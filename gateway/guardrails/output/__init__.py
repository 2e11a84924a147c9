"""Output guardrails: checks that work on whole answers and, through a sliding window, on streams."""
