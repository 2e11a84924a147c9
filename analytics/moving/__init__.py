"""Brings the rows of a request log of one server into the tables of another mode, in another database there."""
