"""Checks answers against the JSON schema that their request specified."""
