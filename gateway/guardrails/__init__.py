"""What a project's requests and answers may hold: checks with one method each, and what runs them."""
