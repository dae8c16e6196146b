"""CPU time and memory of the subtitles of a very long recording.

    python -m bench.subtitles TRANSCRIPT.json… [--hours 10] [--repetitions 5] [--format srt]

Each transcript, in any JSON that `whisperfleet subtitles` reads, is repeated until it has that many hours.
Segments are packed as the service keeps them. Memory is what rendering adds to the process at its peak.
"""

import argparse
import resource
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from app.options import Options
from app.transcript.packed_segments import PackedSegments
from app.transcript.reading import read_transcript
from app.transcript.rendering import render_transcript
from app.transcript.timeline import Transcript
from bench.measuring import REPETITIONS, Table, median
from workers.messages import SAMPLE_RATE, Segment


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("transcripts", type=Path, nargs="+")
    parser.add_argument("--hours", type=float, default=10)
    parser.add_argument("--repetitions", type=int, default=REPETITIONS)
    parser.add_argument("--format", default="srt")
    parsed = parser.parse_args()
    rows = []
    for path in parsed.transcripts:
        transcript = _repeated(read_transcript(path.read_bytes()).transcript, parsed.hours)
        before = _peak_mib()
        runs_s = []
        for _ in range(parsed.repetitions):
            began = time.process_time()
            file = render_transcript(transcript, Options(), parsed.format)
            runs_s.append(time.process_time() - began)
        added = f"{_peak_mib() - before:.1f}"
        rows.append(
            [path.stem, len(transcript.segments), f"{len(file) / 2**20:.1f}", median(runs_s, 2), added]
        )
    columns = ["transcript", "segments", "file, MiB", "CPU, s", "memory, MiB"]
    print(Table(f"{parsed.hours:g} hours, {parsed.format}", columns, rows))


def _repeated(transcript: Transcript, hours: float) -> Transcript:
    count = max(round(hours * 3600 * SAMPLE_RATE / transcript.samples), 1)
    segments = PackedSegments()
    for number in range(count):
        segments.extend(_moved(transcript, number * transcript.samples))
    speech = tuple(
        (start + number * transcript.samples, end + number * transcript.samples)
        for number in range(count)
        for start, end in transcript.speech
    )
    return replace(transcript, segments=segments, speech=speech, samples=count * transcript.samples)


def _moved(transcript: Transcript, by: int) -> Iterator[Segment]:
    for segment in transcript.segments:
        words = tuple(replace(word, start=word.start + by, end=word.end + by) for word in segment.words)
        yield replace(segment, start=segment.start + by, end=segment.end + by, words=words)


def _peak_mib() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


if __name__ == "__main__":
    main()
