"""Each benchmark runs on its smallest size, as the documentation says. No test looks at its times.

tests/e2e/test_bench.py runs `latency` and all parts of `whisperfleet bench`, which take longer.
"""

import ctypes.util
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bench import cluster, scale

ROOT = Path(__file__).parents[2]
BENCH = ROOT / "bench"
NUMBER = r"\d+(\.\d+)?"
NO_VOICES = ctypes.util.find_library("espeak-ng") is None

soak = pytest.mark.soak

# What follows `python -m bench.` or `python bench/`, and a pattern of its output. OUT: a new folder.
COMMANDS = [
    pytest.param("capacity", r"\| server's process \| 1 core \|"),
    pytest.param("__main__ scheduling media stages voices --quick --json OUT/json", r"\| encode \| \d"),
    pytest.param("scale dispatcher schedules server database --quick", r'"jobs_parts_s": \{"\w', marks=soak),
    pytest.param(
        "trace_picture --minutes 0.5 --svg OUT/svg", rf"\| generate text \| \d+ \| {NUMBER} \|", marks=soak
    ),
    pytest.param("again --quick", rf"\| at the end of a long one \| {NUMBER} \|", marks=soak),
    pytest.param("cluster slots audio --quick", r"\| Ray \| \d+ \|", marks=soak),
    pytest.param("diarization OUT --cost", r"\| 48000 \|(.|\n)*\| dialogue \| 3 \| \d", marks=soak),
    pytest.param("endurance --quick", r'polling .*"/health_p99_ms": \d', marks=soak),
    pytest.param("live --quick", r"\*\*\d+ streams and \d+ files", marks=soak),
    pytest.param(
        "live_streams.py tests/data/talk.flac --quick",
        rf"\| talk \| 1 \| 100 \| \d+ \(0\) \| {NUMBER}",
        marks=soak,
    ),
    pytest.param("model_sizes --memory tiny --types int8 --batch 1", r"tiny int8: \d+ MB loaded", marks=soak),
    pytest.param("pairs . --quick", r"The same text: yes", marks=soak),
    pytest.param("quality.py OUT --quick", r"\*\*pooled WER\*\*", marks=soak),
    pytest.param("scale uploads media load --quick", r'"speech_s": \d(.|\n)*"busy_slots": \d', marks=soak),
    pytest.param(
        "word_times.py --quick",
        rf"\| en-us \| \d+ \| \d+ \| {NUMBER}",
        marks=[soak, pytest.mark.skipif(NO_VOICES, reason="needs libespeak-ng")],
    ),
]


def run(command: str, folder: Path) -> str:
    """The output of a benchmark. `OUT` in its words stands for the folder."""
    program, *options = command.replace("OUT", str(folder)).split()
    where = [f"bench/{program}"] if program.endswith(".py") else ["-m", f"bench.{program}"]
    done = subprocess.run([sys.executable, *where, *options], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-5000:]
    return done.stdout


@pytest.mark.server
@pytest.mark.timeout(170)
@pytest.mark.parametrize(("command", "output"), COMMANDS, ids=[str(each.values[0]) for each in COMMANDS])
def test_a_benchmark_prints_its_figures(command: str, output: str, tmp_path: Path) -> None:
    for ending in ("flac", "json"):  # a recording with its text and speakers
        shutil.copy(ROOT / "tests" / "data" / f"dialogue.{ending}", tmp_path)
    found = run(command, tmp_path)
    assert re.search(output, found), found[-5000:]


def test_a_gpu_is_measured_with_a_model_of_real_size_also_on_a_cpu(tmp_path: Path) -> None:
    run("sized_model.py tiny OUT", tmp_path)
    small = "--device cpu --compute int8 --workers 1 --batches 1 --beams 1 --repeat 1 --threads 1"
    assert re.search(r"\| int8\w* \| 1 \| 1 \| 1 \| 30 s \| ahead \|", run(f"gpu.py OUT {small}", tmp_path))


def test_each_program_and_each_of_its_parts_has_a_run() -> None:
    programs = {path.stem for path in BENCH.glob("*.py") if '__name__ == "__main__"' in path.read_text()}
    programs -= {"latency", "loop_watch"}  # the second runs within the first
    programs -= {"stub_service"}  # within `scale`
    programs -= {"sized_model", "gpu"}  # in the test above
    programs -= {"gpu_session", "subtitle_rules"}  # they have tests of their own
    words = [str(param.values[0]).replace(".py", "").split() for param in COMMANDS]
    assert programs == {program for program, *_ in words}
    for program, names in {"scale": scale.PARTS, "cluster": cluster.PARTS}.items():
        assert set(names) <= {option for name, *options in words for option in options if name == program}


def test_each_documented_program_exists() -> None:
    pages = [ROOT / "README.md", ROOT / "Makefile", BENCH / "RESULTS.md", *(ROOT / "docs").glob("*.md")]
    text = "\n".join(path.read_text(encoding="utf-8") for path in [*pages, *BENCH.glob("*.py")])
    named = set(re.findall(r"python\d?\s+(?:-m\s+bench\.|bench/)(\w+)", text))
    assert len(named) > 10
    assert {name for name in named if not (BENCH / f"{name}.py").exists()} == set()
