"""Answers questions about sessions, requests and figures with dictionaries of `analytics.wire`.

The management API puts the answers into its envelope of lists, the agent's tools into theirs.
"""
