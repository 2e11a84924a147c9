"""What the agent can look up: the platform's own selectors, read-only, each under one scope and within one project."""
