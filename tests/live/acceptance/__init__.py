"""Acceptance runs of automatic rollouts on the whole product: each kind of target, its users' answers and its
verdict."""
