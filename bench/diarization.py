"""Who speaks: how right the service is, and what clustering ten hours costs.

    python -m bench.diarization [FOLDER] [--url http://localhost:8000] [--generated [MINUTES]] [--cost]

FOLDER contains recordings, each with its truth as JSON: {"cues": [{"start", "end", "speaker"}]}.
`--generated` adds conversations of espeak-ng's and flite's voices, up to so many minutes long. The error is
that of pyannote.metrics, with a collar of 0.25 s and with overlapping speech, for the segments of the
transcript and for its words.
"""

import argparse
import json
import time
import tracemalloc
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import httpx
import numpy as np

from app.transcript.speakers.clustering import find_speakers
from app.transcript.speakers.labelling import SpeakerCount
from app.transcript.speakers.voices import Voices
from bench.dialogues import Kind, dialogue
from bench.measuring import Table
from bench.recordings import RATE
from bench.service import finished_job, running_service, submit_job

COLLAR_S = 0.25  # around each true edge, half of it on each side, as pyannote.metrics has it

# The seeds are the first ones whose voices are as far apart as the two most similar ones of `five`
# (1 - cosine of a dozen words of each: 0.1 or more). Some of espeak-ng's variants are one voice to the model.
GENERATED = {
    "20 minutes, two": (Kind((1.0, 0.7)), 1200, 2101),
    "20 minutes, three, noise": (Kind((1.0, 0.8, 0.6), noise_db=-50), 1200, 2201),
    "20 minutes, three, one says 5 %": (Kind((1.0, 0.9, 0.1), short=0.2), 1200, 2401),
    "20 minutes, five": (Kind((1.0, 0.9, 0.8, 0.7, 0.6)), 1200, 2501),
    "20 minutes, three, overlap": (Kind((1.0, 0.8, 0.6), overlap=0.2), 1200, 2302),
    "2 hours, two": (Kind((1.0, 0.5), short=0.2), 7200, 2001),
    "2 hours, five, noise": (Kind((1.0, 0.8, 0.6, 0.4, 0.2), noise_db=-55), 7200, 2602),
}

Spoken = tuple[float, float, str]  # start and end in s, speaker


def error_rate(truth: Iterable[Spoken], found: Iterable[Spoken], seconds: float) -> dict[str, float]:
    """The diarization error rate and its parts, as shares of the true speech."""
    # They import pandas and scipy: not while tests are collected.
    from pyannote.core import Annotation, Segment, Timeline
    from pyannote.metrics.diarization import DiarizationErrorRate

    def annotation(spoken: Iterable[Spoken]) -> Annotation:
        spans = Annotation()
        for number, (start, end, speaker) in enumerate(spoken):
            spans[Segment(start, end), number] = speaker
        return spans

    metric = DiarizationErrorRate(collar=COLLAR_S, skip_overlap=False)
    whole = Timeline([Segment(0, seconds)])
    result = metric(annotation(truth), annotation(found), uem=whole, detailed=True)
    total = result["total"]
    return {
        "error": result["diarization error rate"],
        **{part: result[part] / total for part in ("missed detection", "false alarm", "confusion")},
    }


def true_speech(document: dict[str, Any]) -> list[Spoken]:
    """What the JSON with the truth says."""
    return [(cue["start"], cue["end"], cue["speaker"]) for cue in document["cues"]]


def by_segments(segments: Iterable[dict[str, Any]]) -> list[Spoken]:
    """Who speaks, by the segments of a job, as the service answers with them."""
    return [
        (segment["start"], segment["end"], segment["speaker"]) for segment in segments if segment["speaker"]
    ]


def by_words(segments: Iterable[dict[str, Any]]) -> list[Spoken]:
    """Likewise, by their words."""
    return [
        (word["start"], word["end"], segment["speaker"])
        for segment in segments
        if segment["speaker"]
        for word in segment["words"]
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--url")
    parser.add_argument("--generated", type=float, nargs="?", const=120, default=0, metavar="MINUTES")
    parser.add_argument("--cost", action="store_true")
    parsed = parser.parse_args()
    if parsed.cost:
        print(Table("Clustering ten hours", ["windows", "CPU, s", "memory, MiB"], [_cost(48_000)]))
    if parsed.folder or parsed.generated:
        columns = [
            "recording",
            "speakers",
            "found",
            "by segments",
            "by words",
            "confusion",
            "missed",
            "false",
        ]
        with running_service(parsed.url) as client:
            recordings = _recordings(parsed.folder, parsed.generated)
            rows = [_row(client, *recording) for recording in recordings]
        print(Table("Diarization error rate", columns, rows))


def _recordings(folder: Path | None, longest_min: float) -> Iterator[tuple[str, Path, list[Spoken]]]:
    for path in sorted(folder.glob("*.json")) if folder else ():
        yield path.stem, path.with_suffix(".flac"), true_speech(json.loads(path.read_text()))
    with TemporaryDirectory() as temporary:
        for name, (kind, seconds, seed) in GENERATED.items():
            if seconds > 60 * longest_min:
                continue
            made = dialogue(kind, seconds, seed)
            path = Path(temporary) / "dialogue.flac"
            made.write(path)
            yield name, path, [(cue.start, cue.end, cue.speaker) for cue in made.cues]


def _row(client: httpx.Client, name: str, path: Path, truth: Sequence[Spoken]) -> list[object]:
    segments = _transcribed(client, path)
    seconds = max(end for _, end, _ in [*truth, *by_segments(segments)]) + 1
    of_segments = error_rate(truth, by_segments(segments), seconds)
    of_words = error_rate(truth, by_words(segments), seconds)
    speakers, found = ({speaker for _, _, speaker in spoken} for spoken in (truth, by_segments(segments)))
    parts = [of_segments[part] for part in ("confusion", "missed detection", "false alarm")]
    shares = [of_segments["error"], of_words["error"], *parts]
    return [name, len(speakers), len(found), *(f"{100 * share:.1f} %" for share in shares)]


def _transcribed(client: httpx.Client, path: Path) -> list[dict[str, Any]]:
    job = submit_job(client, path, diarize="true")
    finished_job(client, job)
    segments: list[dict[str, Any]] = (
        client.get(f"/v1/jobs/{job}/segments").raise_for_status().json()["segments"]
    )
    client.delete(f"/v1/jobs/{job}").raise_for_status()
    return segments


def _cost(windows: int) -> list[object]:
    """Clustering of so many windows of six voices, which change every 6 s."""
    source = np.random.default_rng(0)
    voices = (source.random((6, 256), np.float32) ** 4)[source.integers(0, 6, windows // 8).repeat(8)]
    embeddings = voices + 0.3 * source.random((windows, 256), np.float32)
    embeddings /= np.linalg.norm(embeddings, axis=1, keepdims=True)
    step = 3 * RATE // 4
    spans = tuple((number * step, number * step + 2 * step) for number in range(windows))
    began = time.process_time()
    found = find_speakers(Voices(spans, embeddings), SpeakerCount())
    cpu_s = time.process_time() - began
    if int(found.max()) != 5:
        raise RuntimeError(f"{found.max() + 1} voices were found, of 6")
    tracemalloc.start()
    find_speakers(Voices(spans, embeddings), SpeakerCount())
    return [windows, f"{cpu_s:.1f}", f"{tracemalloc.get_traced_memory()[1] / 2**20:.0f}"]


if __name__ == "__main__":
    main()
