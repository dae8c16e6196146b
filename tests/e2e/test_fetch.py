"""`transcribe --keep` and `fetch`: recordings in, corrected transcripts in a folder."""

import json
from pathlib import Path

import pytest

from tests.e2e.fixtures import Commands
from tests.e2e.running import DATA, SIMULATED, Server

pytestmark = pytest.mark.timeout(600)

KEY = "sk-very-secret"


@pytest.fixture(scope="module")
def service(module_commands: Commands) -> Server:
    settings = {**SIMULATED, "WHISPER_SIMULATED": "speed=1000", "WHISPER_API_KEYS": KEY}
    return module_commands.ready(key=KEY, **settings)


def many(folder: Path, count: int) -> Path:
    """A folder with recordings of a second or so. Two have the same name, in different folders."""
    content = (DATA / "short00.flac").read_bytes()
    for number in range(count):
        path = folder / ("more" if number == 1 else "") / f"Interview {max(number, 1)}.flac"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_bytes(content)
    return folder


def correct(service: Server, job: dict, text: str) -> None:  # type: ignore[type-arg]
    document = {"segments": [{"start": 0, "end": 1, "text": text, "speaker": "Ann"}]}
    path = f"/v1/jobs/{job['id']}/segments"
    service.client.put(path, json=document, headers={"If-Match": "*"}).raise_for_status()


def contents(folder: Path) -> dict[str, bytes]:
    files = [path for path in folder.rglob("*") if path.is_file() and not path.name.startswith(".")]
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in files}


def test_recordings_become_corrected_transcripts_in_a_folder(run_here, service, tmp_path):
    recordings, count = many(tmp_path / "interviews", 4), 4

    def run(*arguments: object) -> list[str]:
        done = run_here(*arguments, "--server", service.url, WHISPER_API_KEY=KEY)
        assert done.code == 0, done.stderr
        return done.stderr.splitlines()

    def fetch(*arguments: object) -> list[str]:
        """The names of the files that are brought."""
        *_, last = lines = run("fetch", "--tag", f"study {count}", "-o", tmp_path / "texts", *arguments)
        names = [line.partition("/texts/")[2] for line in lines if line.startswith("→")]
        assert last == f"transcripts: {len(names)} brought, {count - len(names)} as they were"
        return names

    keep = ("transcribe", recordings, "-o", f"{tmp_path / 'drafts'}/", "--keep")
    keep += ("--tag", f"study {count}", "--tag", "Spring", "--speakers", 1, "--overwrite")
    run(*keep)
    query = {"tag": f"study {count},spring", "limit": 100}
    page = service.client.get("/v1/jobs", params=query).raise_for_status().json()
    jobs = list(page["data"])
    while page["has_more"]:
        page = service.client.get("/v1/jobs", params={**query, "after": jobs[-1]["id"]}).json()
        jobs += page["data"]
    assert len(jobs) == count
    assert {job["options"]["num_speakers"] for job in jobs} == {1}

    assert len(fetch("--format", "md")) == count
    before = contents(tmp_path / "texts")
    assert {"Interview 1.md", "more/Interview 1.md"} < before.keys(), "folders are kept"
    assert fetch("--format", "md") == []

    for number, job in enumerate(jobs[: count // 2]):
        correct(service, job, f"Corrected {number}.")
    changed = fetch("--format", "md")
    after = contents(tmp_path / "texts")
    assert len(changed) == count // 2
    assert {name for name, content in after.items() if content != before[name]} == set(changed)
    assert b"**Ann:** Corrected" in after[changed[0]]
    assert fetch("--format", "md") == []

    run(*keep)  # finds the jobs that it has made
    assert len(service.client.get("/v1/jobs", params=query).json()["data"]) == count

    title = {"title": "../../The: end", "tags": [f"study {count}"]}
    service.client.patch(f"/v1/jobs/{jobs[0]['id']}", json=title).raise_for_status()
    [moved] = fetch("--format", "md")
    names = contents(tmp_path / "texts").keys()
    assert moved == "_.._The_ end.md"
    assert len(names) == count
    (tmp_path / "texts" / moved).unlink()
    assert fetch("--format", "md") == [moved]
    assert len(fetch("--format", "docx", "--option", "times=true")) == count


def test_what_somebody_changed_in_the_folder_stays(run_here, service, tmp_path):
    job = service.finished(service.submit(DATA / "short01.flac", tags="mine")["id"])
    arguments = (
        "fetch",
        "--tag",
        "mine",
        "-o",
        tmp_path / "texts",
        "--format",
        "txt",
        "--server",
        service.url,
    )
    foreign = tmp_path / "texts" / "short01.txt"
    foreign.parent.mkdir()
    foreign.write_text("notes")
    broken = tmp_path / "broken.wav"
    broken.write_text("no sound")
    service.finished(service.submit(broken, tags="mine")["id"])
    brought = run_here(*arguments, WHISPER_API_KEY=KEY)
    assert brought.code == 0
    assert "\n1 job has failed: the page says why" in brought.stderr
    ours = tmp_path / "texts" / "short01 (2).txt"
    assert foreign.read_text() == "notes"
    ours.write_text("my own words")
    other = run_here(*arguments, "--option", "numbered=true", WHISPER_API_KEY=KEY)
    assert other.code == 1
    assert "the transcript or its options have changed" in other.stderr
    correct(service, job, "Corrected.")
    refused = run_here(*arguments, WHISPER_API_KEY=KEY)
    assert (refused.code, ours.read_text()) == (1, "my own words")
    assert "was changed here" in refused.stderr
    ours.unlink()
    assert run_here(*arguments, WHISPER_API_KEY=KEY).code == 0
    assert ours.read_text() == "Ann: Corrected.\n"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("transcribe", "a.flac", "--keep"), "add --server"),
        (("transcribe", "a.flac", "--tag", "x"), "add --keep"),
        (("transcribe", ".", "--keep", "--title", "T", "--server", "x"), "--title is for one"),
        (("fetch", "-o", "texts", "--option", "beam_size=3"), "beam_size cannot be chosen"),
        (("fetch", "-o", "texts", "--format", "pdf"), "--format pdf is not known"),
    ],
)  # fmt: skip
def test_wrong_usage_says_what_to_do(run_here, tmp_path, monkeypatch, arguments, named):
    for name in ("a.flac", "b.flac"):
        (tmp_path / name).write_bytes(b"")
    monkeypatch.chdir(tmp_path)
    refused = run_here(*arguments)
    assert refused.code == 2
    assert named in " ".join(refused.stderr.replace("│", "").split())


def test_an_index_that_points_outside_is_refused(run_here, tmp_path):
    entry = {"name": "../x", "version": "", "digest": ""}
    (tmp_path / ".whisperfleet.json").write_text(json.dumps({"files": {"a.srt": entry}}))
    refused = run_here("fetch", "-o", tmp_path, "--server", "http://127.0.0.1:1")
    assert refused.code == 1
    assert "remove it, and fetch again" in refused.stderr
