"""Fakes of the vendors' batch APIs, as strict as the vendors."""
