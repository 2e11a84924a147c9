"""Who may do what: roles of people, the rights that they bring, and one table of what needs which."""
