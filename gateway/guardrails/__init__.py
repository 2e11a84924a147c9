"""Guardrails of requests and answers: checks with one method each, and the code that runs them."""
