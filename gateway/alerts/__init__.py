"""Alerts of projects: about the month's budget (docs/limits.md) and about rollouts at 100 %; alerts on figures are in
`gateway.figure_alerts`. `watch` and `rollouts` raise them, `recipients` says who gets them, `messages` what they are
told, and `delivery` sends it by `webhook`, `slack` and `mail`."""
