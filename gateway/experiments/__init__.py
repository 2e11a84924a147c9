"""Experiments: past requests of a project that versions of prompts, or models, answer once more, side by side."""
