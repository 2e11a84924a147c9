"""Adapts the schema, its migrations and the queries, all written for one server, to stores of several servers.

`mode` says which servers there are, `ddl` turns a definition into that of the mode, and `routing` says where a
statement runs, and after what.
"""
