"""One worker against two, with one thread each: wall time.

whisperfleet bench scaling [--minutes 5 30] [--threads 1] [--repetitions 5] [--json FILE]
"""

from functools import partial
from pathlib import Path

from bench.command import Options
from bench.measuring import Figures, Table, interleaved, median, ratio, timed
from bench.recordings import talk_for
from bench.service import running_service
from bench.throughput import one_worker, request_srt


def measure(options: Options, folder: Path) -> tuple[Figures, list[Table]]:
    """Measure wall times and their ratio for each length."""
    single = one_worker(options.threads)
    figures: Figures = {"threads_of_each": options.threads}
    rows = []
    with (
        running_service(**single) as one,
        running_service(**single | {"WHISPER_CPU_WORKERS": "2"}) as two,
    ):
        for minutes in options.lengths(5, 30):
            path = talk_for(folder, 60 * minutes, talk=options.talk).path
            ways = {
                name: partial(timed, partial(request_srt, client, path))
                for name, client in (("one worker", one), ("two workers", two))
            }
            runs_s = interleaved(ways, options.repetitions)
            times_one = round(ratio(*runs_s.values()), 3)
            figures[f"{minutes:g} min"] = {"runs_s": runs_s, "ratio": times_one}
            rows.append([f"{minutes:g} min", *map(median, runs_s.values()), times_one])
    columns = ["talk", "one worker, s", "two, s", "ratio"]
    return figures, [Table("One worker against two", columns, rows)]
