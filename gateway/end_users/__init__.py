"""The limits of end users by name, in the management API (docs/limits.md#limits-of-end-users)."""
