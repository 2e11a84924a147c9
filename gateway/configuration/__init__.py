"""Projects as files: `manage.py apply`, `export` and `import_from` (docs/configuration-files.md)."""
