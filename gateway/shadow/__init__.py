"""Shadows: before a rollout begins, its target answers requests of the baseline, too, and no user sees it."""
