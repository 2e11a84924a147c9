"""The tools of the agent: the platform's own selectors, read-only, each under one scope and within one project."""
