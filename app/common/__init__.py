"""Small modules that all packages may import."""
