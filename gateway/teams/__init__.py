"""The endpoints of teams, which warn if the project's own limits are lower (docs/limits.md#limits-of-teams)."""
