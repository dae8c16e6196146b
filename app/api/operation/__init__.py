"""What operators ask for: health, models, workers, nodes, metrics."""
