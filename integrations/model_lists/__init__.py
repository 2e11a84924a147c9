"""The models that can be called at each provider: by the provider's own list, or else by the shipped catalogs."""
