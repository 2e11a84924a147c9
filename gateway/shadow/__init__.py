"""Shadows: before a rollout begins, its target also answers the baseline's requests, unseen by users."""
