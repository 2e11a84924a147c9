"""Structural fuzzers of the five entrances: gateway, management API, OTLP, MCP, and the answers of providers.

A fuzzer takes a seed of the kept corpus (`corpus/`), changes its structure, sends it to a running gateway and holds
what comes back to what every answer must be. Everything follows from two numbers, so each finding is replayed by them:
`python -m tests.fuzzing --entrance otlp --seed 7 --case 12`. What was found is kept in the corpus.
"""
