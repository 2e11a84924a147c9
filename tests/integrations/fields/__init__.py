"""Tests every field of the vendors' SDK types: the values that a client may send in it, and its fate at each
provider."""
