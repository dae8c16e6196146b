"""The front end: audio in over HTTP, subtitles out. Imports neither torch nor ctranslate2."""
