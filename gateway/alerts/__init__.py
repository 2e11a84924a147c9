"""Alerts about a project's monthly budget: at 50, 80 and 100 percent, each sent once a month (docs/limits.md). `watch`
raises them, `delivery` sends them by `webhook` and by `mail`."""
