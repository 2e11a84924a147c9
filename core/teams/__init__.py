"""Teams: a level between a project and its API keys."""
