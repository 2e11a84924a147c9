"""Alerts about a project's monthly budget: at 50, 80 and 100 percent, each told once a month (docs/limits.md#alerts).

`watch` finds what has been reached, `delivery` tells of it, by `webhook` and by `mail`.
"""
