"""Encryption at rest, the canary that proves the keys, and their rotation."""
