"""The time from the last byte of an upload to the first text, for recordings of any length.

    python -m bench.first_cue [--minutes 1 10 60 600] [--threads 1] [--repetitions 5] [--json FILE]

FLAC uploads with streamed answers. A request ends at its first text. One worker; the lengths take turns.
"""

import time
from functools import partial
from io import FileIO
from itertools import count
from pathlib import Path

import httpx

from bench.command import Options, run_alone
from bench.measuring import Figures, Table, interleaved, median
from bench.recordings import write
from bench.service import running_service, until_idle
from bench.throughput import one_worker

_line_chars = count(40)


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure the time to the first text for each length (s), and compare it with the shortest."""
    paths = {}
    for minutes in options.lengths(1, 10, 60, 600):
        paths[f"{minutes:g} min"] = folder / f"first-{minutes:g}.flac"
        write(paths[f"{minutes:g} min"], 60 * minutes, options.talk)
    with running_service(**one_worker(options.threads)) as client:
        runs_s = interleaved(
            {name: partial(first_text_s, client, path) for name, path in paths.items()}, options.repetitions
        )
    shortest = median(next(iter(runs_s.values())))
    medians = {name: median(times) for name, times in runs_s.items()}
    figures = {"threads": options.threads, "runs_s": runs_s, "median_s": medians}
    rows = [
        [
            name,
            f"{seconds:.2f}",
            f"{seconds - shortest:+.2f}",
            f"{min(runs_s[name]):.2f} to {max(runs_s[name]):.2f}",
        ]
        for name, seconds in medians.items()
    ]
    columns = ["recording", "median, s", "more than the shortest, s", "from … to, s"]
    return figures, [Table("From the upload's last byte to the first text", columns, rows)]


def first_text_s(client: httpx.Client, path: Path) -> float:
    """The time (s) from the last byte of the file to the first delta. Closes the stream then."""
    with (
        _Upload(path) as upload,
        client.stream(
            "POST",
            "/v1/audio/transcriptions",
            files={"file": (path.name, upload)},
            # Different options each time: the service keeps the results of a repeated request.
            data={"model": "whisper-1", "stream": "true", "max_line_chars": str(next(_line_chars))},
        ) as answer,
    ):
        answer.raise_for_status()
        next(line for line in answer.iter_lines() if "transcript.text.delta" in line)
        seconds = time.perf_counter() - upload.sent_at
    until_idle(client)
    return seconds


class _Upload(FileIO):
    """A file that notes when it was last read."""

    sent_at = 0.0

    def read(self, size: int | None = -1, /) -> bytes:
        data = super().read(-1 if size is None else size)
        self.sent_at = time.perf_counter()
        return data


if __name__ == "__main__":
    run_alone("first_cue", measure, __doc__)
