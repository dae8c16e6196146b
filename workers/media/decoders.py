"""Which of FFmpeg's decoders decodes a sound track."""

from typing import Any

# FFmpeg's own fail on each frame of comfort noise, which stands for the pauses.
_BETTER = {"amrnb": "libopencore_amrnb", "amrwb": "libopencore_amrwb"}


def decoder_of(stream: Any) -> Any:
    """The decoder for the packets of a stream: that of FFmpeg's choice, or a better one."""
    from av import CodecContext

    usual = stream.codec_context
    better = _BETTER.get(usual.name)
    if better is None or usual.channels > 1:
        return usual
    decoder: Any = CodecContext.create(better, "r")
    decoder.thread_count = 1
    return decoder
