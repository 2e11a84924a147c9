"""Structural fuzzers of the five entrances: gateway, management API, OTLP, MCP, and the answers of providers.

A fuzzer takes a seed of the kept corpus (`corpus/`), changes its structure, sends it to a running gateway and checks
the answer against the rules for all answers. Everything follows from two numbers, which replay each finding: `python -m
tests.fuzzing --entrance otlp --seed 7 --case 12`. Findings are kept in the corpus.
"""
