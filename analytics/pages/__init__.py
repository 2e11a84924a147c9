"""The operators' pages about requests and what is said of them, one module per page. `analytics.admin` imports them, as
Django asks."""
