"""The operators' pages in a browser, over 200,000 requests: the twelve everyday jobs and what holds for every page."""
