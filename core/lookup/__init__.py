"""Finds what an id names."""
