"""`make pictures` or `python -m tests.browser.pictures [NAME ...]`: takes the documents' pictures of a running product.

The command starts a service of its own, gives it the data of `manage.py generate_traffic` and `manage.py demo`, a team
of people with what they keep, and a rollout whose target fails, waits until that rollout has decided, and writes
`docs/pictures/<name>.png`, and `<name>-narrow.png` of the pages that the documents also show in a narrow window.
"""
