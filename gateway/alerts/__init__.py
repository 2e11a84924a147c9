"""Alerts about a project's monthly budget (docs/limits.md) and about rollouts at 100 %. Alerts on figures are in
`gateway.figure_alerts`.

`watch` and `rollouts` raise alerts, `recipients` selects who gets them, `messages` writes them, and `delivery` sends
them by `webhook`, `slack` and `mail`.
"""
