"""What the management API and the pages tell of a project now: use of limits, problems, settings without effect."""
