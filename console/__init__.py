"""The operators' pages: one folder per page or subject, with its templates and static files."""
