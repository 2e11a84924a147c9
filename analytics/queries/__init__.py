"""The queries of the analytics store, one question per file: SQL, parameters, row type, function, project first."""
