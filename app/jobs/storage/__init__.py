"""Jobs in the database, and what is kept in memory of them."""
