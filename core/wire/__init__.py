"""The JSON of the management API: fields, bodies, parameters and pages of lists."""
