"""Reads stored bodies of any operation as conversations: pure functions that fail on no body."""
