"""Word errors and cue edges of the service over HTTP against faster-whisper, on the same recordings.

    .venv/bin/python bench/quality.py FOLDER [--model FOLDER] [--url http://localhost:8000] [--json OUT]

FOLDER contains recordings, each with its true transcript as JSON:
{"language", "cues": [{"start", "end", "text"}]}. The requests to the service do not name the language.
faster-whisper runs in this process with the same model, compute type and beam. Prints a table in Markdown.
"""

import json
import re
import statistics
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx
import jiwer
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from app.engines.model_files import DEMO_PATH
from bench.command import parser_of
from bench.measuring import markdown, write_json
from bench.service import running_service


@dataclass(frozen=True)
class Transcript:
    """The transcript of a recording by one way. Times in s."""

    text: str
    times: list[float]  # of all word and segment edges


@dataclass(frozen=True)
class Score:
    """The distance of a transcript from the truth."""

    errors: int
    words: int
    median_s: float
    p97_s: float

    @property
    def wer(self) -> float:
        return self.errors / self.words


def score(transcript: Transcript, cues: Sequence[dict]) -> Score:
    """Word errors, and the distance of each true cue edge from the nearest edge of the transcript."""
    truth = normalise(" ".join(cue["text"] for cue in cues))
    found = jiwer.process_words(truth, normalise(transcript.text))
    times = np.array(transcript.times or [np.inf])
    distances = [float(np.min(np.abs(times - cue[edge]))) for cue in cues for edge in ("start", "end")]
    return Score(
        found.substitutions + found.deletions + found.insertions,
        len(truth.split()),
        statistics.median(distances),
        float(np.percentile(distances, 97)),
    )


def normalise(text: str) -> str:
    """Lower case, without punctuation."""
    return " ".join(re.sub(r"[^\w\s]", " ", text.lower()).split())


def transcribe_by_service(client: httpx.Client, path: Path) -> Transcript:
    """Segments and words of the service."""
    answer = client.post(
        "/v1/audio/transcriptions",
        files={"file": (path.name, path.read_bytes())},
        data={
            "model": "whisper-1",
            "response_format": "verbose_json",
            "timestamp_granularities[]": ["segment", "word"],
        },
    )
    answer.raise_for_status()
    body = answer.json()
    times = [
        entry[edge] for kind in ("segments", "words") for entry in body[kind] for edge in ("start", "end")
    ]
    return Transcript(body["text"], times)


def references(paths: Iterable[Path], model_path: Path) -> dict[str, dict[str, Transcript]]:
    """The transcripts of faster-whisper, in three ways."""
    from faster_whisper import BatchedInferencePipeline, WhisperModel

    model = WhisperModel(str(model_path), device="cpu", compute_type="int8")
    batched = BatchedInferencePipeline(model)
    ways = {
        "sequential": lambda path: model.transcribe(path, vad_filter=True, word_timestamps=True),
        "sequential, no previous text": lambda path: model.transcribe(
            path, vad_filter=True, word_timestamps=True, condition_on_previous_text=False
        ),
        "batched": lambda path: batched.transcribe(path, without_timestamps=False, word_timestamps=True),
    }
    transcripts: dict[str, dict[str, Transcript]] = {}
    for path in paths:
        transcripts[path.stem] = {}
        for name, way in ways.items():
            segments = list(way(str(path))[0])
            times = [
                time for segment in segments for word in segment.words for time in (word.start, word.end)
            ]
            transcripts[path.stem][name] = Transcript(" ".join(segment.text for segment in segments), times)
    return transcripts


def table(scores: dict[str, dict[str, Score]]) -> Iterator[str]:
    """Rows of recordings, columns of ways: word error rate, median / 97th percentile of edge distances."""
    ways = list(next(iter(scores.values())))
    rows = [
        [name, *(f"{s.wer:.3f} · {s.median_s:.2f} / {s.p97_s:.2f} s" for s in row.values())]
        for name, row in scores.items()
    ]
    pooled = [
        sum(row[way].errors for row in scores.values()) / sum(row[way].words for row in scores.values())
        for way in ways
    ]
    return markdown(["", *ways], [*rows, ["**pooled WER**", *(f"**{wer:.3f}**" for wer in pooled)]])


def main() -> None:
    """Score every recording of a folder."""
    parser = parser_of(__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--model", type=Path, default=DEMO_PATH, help="default: the demo model")
    parser.add_argument("--url", help="a running service with that model; default: start one")
    arguments = parser.parse_args()
    truths = sorted(path for path in arguments.folder.glob("*.json") if path.with_suffix(".flac").exists())
    truths = truths[:1] if arguments.quick else truths
    recordings = [path.with_suffix(".flac") for path in truths]
    with running_service(arguments.url, WHISPER_MODEL=str(arguments.model)) as client:
        ours = {path.stem: transcribe_by_service(client, path) for path in recordings}
    theirs = references(recordings, arguments.model)
    scores = {}
    for truth in truths:
        cues = json.loads(truth.read_text())["cues"]
        ways = theirs[truth.stem] | {"whisperfleet": ours[truth.stem]}
        scores[truth.stem] = {way: score(transcript, cues) for way, transcript in ways.items()}
    print(*table(scores), sep="\n")
    if arguments.json:
        rows = {name: {way: asdict(s) for way, s in row.items()} for name, row in scores.items()}
        write_json(arguments.json, rows)


if __name__ == "__main__":
    main()
