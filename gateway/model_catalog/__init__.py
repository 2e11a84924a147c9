"""A project's models with their prices, their abilities and the project's own figures (docs/models.md#catalog)."""
