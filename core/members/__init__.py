"""The people of a project."""
