"""Signing in to the pages: by OpenID Connect with rights from groups, and with a password."""
