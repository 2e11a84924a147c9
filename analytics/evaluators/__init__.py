"""Evaluators: how answers are scored, by rules, by similarity or by a model that judges (docs/evaluators.md)."""
