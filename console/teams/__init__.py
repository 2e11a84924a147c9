"""The page of teams: their budgets and rates, what they spent, their keys and their members."""
