"""How a model is run: devices, model files, and the slots of each engine."""
