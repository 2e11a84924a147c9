"""Answers of every provider, changed in ways that vendors change theirs: what holds of an answer still holds."""
