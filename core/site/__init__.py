"""The admin site: access to its pages, and how its tables write values."""
