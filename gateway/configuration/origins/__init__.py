"""Converts configurations of other products to a project of ours, and lists what has no counterpart here."""
