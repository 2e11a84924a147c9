"""Automatic rollouts on the whole product: what users of a target can meet, and what becomes of it."""
