"""Every field of the vendors' SDK types, what a client may put into it, and what becomes of it at each provider."""
