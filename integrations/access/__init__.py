"""Access to a provider: credentials, the addresses they may be sent to, and the checks of an integration's fields."""
