"""The base of the management API: ViewSets on one project, and the router that gives them their paths."""
