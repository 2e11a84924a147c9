"""The operators' pages of rollouts: the list, the form of a new one, and the page of one."""
