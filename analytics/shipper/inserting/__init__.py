"""A few inserters write the small batches of many hosts: an insert has a price of its own, however few rows it has."""
