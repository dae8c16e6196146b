"""Transcribes clips with a loaded model in this process, without the service."""

from collections.abc import Callable, Sequence

from app.recording.clip_decoding import ClipRequest, decode_clip
from app.transcript.timeline import ClipResult
from workers.messages import Window, WindowResult

Decode = Callable[[Sequence[Window]], list[WindowResult]]


def transcribe_clips(decode: Decode, clips: Sequence[ClipRequest]) -> list[ClipResult]:
    """The results of clips, in order: the windows that they want next are decoded together, in rounds.

    Windows with different batch keys are decoded in batches of their own.
    """
    results: dict[int, ClipResult] = {}
    generators = [decode_clip(clip) for clip in clips]
    wanted = {place: next(generator) for place, generator in enumerate(generators)}
    while wanted:
        key = next(iter(wanted.values())).batch_key
        places = [place for place, window in wanted.items() if window.batch_key == key]
        decoded = decode([wanted.pop(place).for_worker().read() for place in places])
        for place, result in zip(places, decoded, strict=True):
            try:
                wanted[place] = generators[place].send(result)
            except StopIteration as done:
                results[place] = done.value
    return [results[place] for place in range(len(clips))]
