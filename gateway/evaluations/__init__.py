"""Runs evaluators over answers: rules at once, judges and similarity by requests of the gateway."""
