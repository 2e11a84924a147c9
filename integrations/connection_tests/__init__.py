"""Tests of an integration's connection, asked for by people and stored."""
