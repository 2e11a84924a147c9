"""Facts about models: their context, their largest output, and the kinds of input and output that they handle."""
