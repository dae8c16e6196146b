"""Jobs: accepted once, kept in a database, worked on until they are done, whatever happens meanwhile."""
