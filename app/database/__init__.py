"""The database: SQLite in the data folder, or PostgreSQL. It knows tables, and not what they mean."""
