"""Word errors and cue edges of the whole service against faster-whisper, on the same recordings.

    .venv/bin/python bench/quality.py FOLDER [--url http://localhost:8000] [--json OUT]

FOLDER holds recordings with the truth beside each, as JSON: {"language", "cues": [{"start", "end", "text"}]}.
The service is asked over HTTP, without being told the language; faster-whisper runs in this process, with
the same model, compute type and beam. Prints a table in Markdown.
"""

import argparse
import json
import re
import statistics
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import httpx
import jiwer
import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from app.engines.model_files import DEMO_PATH
from bench.service import running_service


@dataclass(frozen=True)
class Heard:
    """What one way of transcribing made of a recording. Times in s."""

    text: str
    times: list[float]  # of all word and segment edges that it gives


@dataclass(frozen=True)
class Score:
    """How far that is from the truth."""

    errors: int
    words: int
    median_s: float
    p97_s: float

    @property
    def wer(self) -> float:
        return self.errors / self.words


def score(heard: Heard, cues: Sequence[dict]) -> Score:
    """Word errors, and for each true cue edge the distance to the nearest edge that was heard."""
    truth = normalise(" ".join(cue["text"] for cue in cues))
    found = jiwer.process_words(truth, normalise(heard.text))
    times = np.array(heard.times or [np.inf])
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


def ask_service(client: httpx.Client, path: Path) -> Heard:
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
    return Heard(body["text"], times)


def references(paths: Iterable[Path]) -> dict[str, dict[str, Heard]]:
    """The same by faster-whisper, in three ways."""
    from faster_whisper import BatchedInferencePipeline, WhisperModel

    model = WhisperModel(str(DEMO_PATH), device="cpu", compute_type="int8")
    batched = BatchedInferencePipeline(model)
    ways = {
        "sequential": lambda path: model.transcribe(path, vad_filter=True, word_timestamps=True),
        "sequential, no previous text": lambda path: model.transcribe(
            path, vad_filter=True, word_timestamps=True, condition_on_previous_text=False
        ),
        "batched": lambda path: batched.transcribe(path, without_timestamps=False, word_timestamps=True),
    }
    heard: dict[str, dict[str, Heard]] = {}
    for path in paths:
        heard[path.stem] = {}
        for name, way in ways.items():
            segments = list(way(str(path))[0])
            times = [
                time for segment in segments for word in segment.words for time in (word.start, word.end)
            ]
            heard[path.stem][name] = Heard(" ".join(segment.text for segment in segments), times)
    return heard


def table(scores: dict[str, dict[str, Score]]) -> str:
    """Rows of recordings, columns of ways; word error rate, and median / 97th percentile of edges."""
    ways = list(next(iter(scores.values())))
    lines = ["| | " + " | ".join(ways) + " |", "| --- |" + " --- |" * len(ways)]
    for name, row in scores.items():
        cells = [f"{s.wer:.3f} · {s.median_s:.2f} / {s.p97_s:.2f} s" for s in row.values()]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    pooled = [
        sum(row[way].errors for row in scores.values()) / sum(row[way].words for row in scores.values())
        for way in ways
    ]
    lines.append("| **pooled WER** | " + " | ".join(f"**{wer:.3f}**" for wer in pooled) + " |")
    return "\n".join(lines)


def main() -> None:
    """Score every recording of a folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--url", help="a running service; else one is started with the demo model")
    parser.add_argument("--json", type=Path, help="write the scores there")
    arguments = parser.parse_args()
    truths = sorted(path for path in arguments.folder.glob("*.json") if path.with_suffix(".flac").exists())
    recordings = [path.with_suffix(".flac") for path in truths]
    with running_service(arguments.url) as client:
        ours = {path.stem: ask_service(client, path) for path in recordings}
    theirs = references(recordings)
    scores = {}
    for truth in truths:
        cues = json.loads(truth.read_text())["cues"]
        ways = theirs[truth.stem] | {"whisperfleet": ours[truth.stem]}
        scores[truth.stem] = {way: score(heard, cues) for way, heard in ways.items()}
    print(table(scores))
    if arguments.json:
        rows = {name: {way: asdict(s) for way, s in row.items()} for name, row in scores.items()}
        arguments.json.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
