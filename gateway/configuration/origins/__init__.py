"""Configurations of other products, read as a project of ours and a list of what has no counterpart here."""
