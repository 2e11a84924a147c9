"""Experiments: versions of prompts, or models, answer a project's past requests once more, side by side."""
