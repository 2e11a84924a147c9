"""Reads stored bodies of any operation as conversations: pure functions that never fail."""
