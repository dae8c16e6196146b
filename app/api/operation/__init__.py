"""Endpoints for operators: health, models, workers, nodes, metrics."""
