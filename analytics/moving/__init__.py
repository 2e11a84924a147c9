"""Moves the rows of a single server's request log into the tables of another mode, in another database there."""
