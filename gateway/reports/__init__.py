"""Reports on a project as it is now, for API and pages: limits used, problems, settings without effect."""
