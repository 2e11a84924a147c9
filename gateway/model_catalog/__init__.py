"""The models of a project with what they cost, what they can, and how they do here (docs/models.md#catalog)."""
