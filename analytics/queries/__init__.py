"""The queries of the analytics store, one question a file: SQL, parameters, row type, function, project first."""
