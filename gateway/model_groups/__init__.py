"""The management of model groups (docs/model-groups.md)."""
