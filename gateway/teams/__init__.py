"""The endpoints of teams, which warn where the project's own limits are lower (docs/limits.md#limits-of-teams)."""
