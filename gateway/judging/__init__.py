"""Grades answers with the project's judge model."""
