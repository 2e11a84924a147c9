"""Answers that are given again to the same request (design, section 5, Cache)."""
