"""Answers graded by the project's judge model."""
