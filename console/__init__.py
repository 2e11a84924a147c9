"""The operators' pages: a folder for each page or small subject, with its templates and its static files."""
