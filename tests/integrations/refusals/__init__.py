"""Tests of the tables of refusals in `tests/fakes/dialects/rules`."""
