"""Questions to the analytics store, one a file: SQL, parameters, row type, function. Each takes a project first."""
