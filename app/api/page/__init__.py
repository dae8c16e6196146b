"""The page and its files."""
