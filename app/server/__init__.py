"""The HTTP server around the application, and what every request passes before its route."""
