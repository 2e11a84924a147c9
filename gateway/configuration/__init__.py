"""Projects as a file, for `manage.py apply`, `export` and `import_from` (docs/configuration-files.md)."""
