"""The media worker: decodes recordings and detects speech in them."""
