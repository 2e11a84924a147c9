"""Answers `GET /models`: the models that a project can call now (docs/models.md)."""
