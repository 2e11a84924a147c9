"""How many servers keep the analytics store, and what that makes of a statement.

The schema, its migrations and the queries are written for one server. `mode` says which servers there are, `ddl` turns
a definition into that of the mode, and `routing` says where a statement is asked, and after what.
"""
