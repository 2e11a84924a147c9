"""The pages of data sets: their list, one set with its items, and its export."""
