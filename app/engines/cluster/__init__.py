"""The engine `ray`: slots of Whisper workers on the nodes of a Ray cluster."""
