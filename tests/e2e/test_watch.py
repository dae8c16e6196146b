"""`whisperfleet watch` as people use it: real processes, which are killed, and files that come and go."""

import signal
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.e2e.chaos import mixed_recordings
from tests.e2e.running import Command, Server, free_port, wait_for

pytestmark = pytest.mark.timeout(120)

WORKERS, BATCH = 2, 4


def lines(watch: Command, what: str) -> list[str]:
    """The lines about recordings that begin with a word."""
    return [line for line in watch.stdout.splitlines() if line.startswith(what)]


def copy_slowly(source: Path, target: Path) -> None:
    content = source.read_bytes()
    third = len(content) // 3
    with target.open("wb") as file:
        for part in (content[:third], content[third : 2 * third], content[2 * third :]):
            file.write(part)
            file.flush()
            time.sleep(0.3)


def running_jobs(server: Server) -> set[str]:
    answer = server.client.get("/v1/jobs", params={"status": "running"})
    return {job["filename"] for job in answer.raise_for_status().json()["data"]}


@pytest.mark.soak
def test_kills_renames_and_a_broken_file(commands, sabotage, talk_pcm, tmp_path):
    """Twenty files arrive slowly. Watcher and service are killed on the way."""
    (tmp_path / "source").mkdir()
    lengths_s = [4, 5, 6, 4, 5, 30, *[4, 5, 6] * 4, 40]
    recordings = mixed_recordings(talk_pcm, tmp_path / "source", lengths_s)
    films = tmp_path / "films"
    (films / "Series" / "Season 1").mkdir(parents=True)
    folder, port = tmp_path / "server", free_port()
    settings = {"WHISPER_GPUS": "0,1", "WHISPER_BATCH_SIZE": BATCH, **sabotage.settings}
    server = commands.serve(folder=folder, port=port, **settings).wait_until_ready()
    options = [films, "--settle", 0.5, "--server", f"{server.url}/v1"]
    watch = commands.start("watch", *options, folder=tmp_path / "watch")

    def arrive(number: int) -> None:
        name = f"recording{number}"
        copy_slowly(recordings[name], (films, films / "Series" / "Season 1")[number % 2] / f"{name}.wav")

    (films / "broken.mkv").write_bytes(b"no film")
    long = films / "Series" / "Season 1" / "recording5.wav"
    with ThreadPoolExecutor(6) as copying:
        for number in [5, *range(5), *range(6, 15)]:
            copying.submit(arrive, number)
        wait_for(lambda: long.name in running_jobs(server))
        renamed = long.with_name("renamed.wav")
        long.rename(renamed)
        wait_for(lambda: len(lines(watch, "done")) >= 3)
        watch.process.kill()
        watch.wait()
        first = watch
        watch = commands.start("watch", *options, folder=tmp_path / "watch2", WHISPER_DATA_DIR=first.data)
        wait_for(lambda: len(lines(watch, "done")) >= 3)
        for number in (18, 15, 16, 17):
            copying.submit(arrive, number)
        wait_for(lambda: "recording18.wav" in running_jobs(server))
        decoded_before = Counter(sabotage.decoded())
        assert max(decoded_before.values()) == 1, "the killed watcher repeated work"
        server.die()
    wait_for(lambda: "waiting for http" in watch.stderr)
    server = commands.serve(folder=folder, port=port, **settings).wait_until_up()

    def subtitles() -> set[str]:
        return {path.name for path in films.rglob("*.srt")}

    expected = {f"{name}.en.srt" for name in recordings if name != "recording5"} | {"renamed.en.srt"}
    wait_for(lambda: len(subtitles()) >= 19, 90)
    wait_for(lambda: not server.client.get("/v1/jobs").json()["data"], 20)
    assert subtitles() == expected
    both = first.stdout + watch.stdout
    failed = [line for line in both.splitlines() if line.startswith("failed")]
    assert len(failed) == 1
    assert str(films / "broken.mkv") in failed[0]
    again = sum(Counter(sabotage.decoded()).values()) - len(set(sabotage.decoded()))
    assert again <= WORKERS * BATCH, f"{again} windows were decoded again"
    assert watch.stderr.count("waiting for http") == 1
    assert all(path.stat().st_size for path in films.rglob("*.srt"))
    assert not list(films.rglob(".whisperfleet*"))
    # A third start has nothing to do.
    watch.process.terminate()
    assert watch.wait(10) == 0
    count = len(sabotage.decoded())
    third = commands.start("watch", *options, folder=tmp_path / "watch3", WHISPER_DATA_DIR=first.data)
    wait_for(lambda: "watching" in third.stderr)
    time.sleep(1)
    assert third.stdout == ""
    assert len(sabotage.decoded()) == count


def test_without_a_service(commands, sabotage, talk_pcm, tmp_path):
    """The service is in the process that is killed, and goes on at the next start."""
    films = tmp_path / "films"
    films.mkdir()
    settings = {"WHISPER_GPUS": "0", "WHISPER_BATCH_SIZE": 1, "WHISPER_DATA_DIR": tmp_path / "data"}
    settings |= sabotage.settings
    mixed_recordings(talk_pcm, films, [40])
    killed = commands.start("watch", films, "--settle", 0.2, folder=tmp_path / "1", **settings)
    wait_for(lambda: sabotage.decoded(), 60)
    killed.process.kill()
    wait_for(lambda: not killed.running(), 10)
    stopped = commands.start("watch", films, "--settle", 0.2, folder=tmp_path / "2", **settings)
    wait_for(lambda: lines(stopped, "done"), 60)
    stopped.process.send_signal(signal.SIGINT)
    assert stopped.wait(20) == 0
    wait_for(lambda: not stopped.running(), 5)
    assert [path.name for path in films.glob("*.srt")] == ["recording0.en.srt"]
    again = len(sabotage.decoded()) - len(set(sabotage.decoded()))
    assert again <= 1, "only batches in flight are repeated"
    assert "Traceback" not in killed.stderr + stopped.stderr


def test_one_watcher_for_each_folder(commands, tmp_path):
    """Also while its service is not there yet."""
    films = tmp_path / "films"
    (films / "new").mkdir(parents=True)
    (films / "film.mkv").write_bytes(b"film")
    options = ["--settle", 0.1, "--server", f"http://127.0.0.1:{free_port()}"]
    first = commands.start("watch", films, *options)
    wait_for(lambda: "waiting for http" in first.stderr, 30)
    second = commands.run("watch", films / "new", *options, WHISPER_DATA_DIR=first.data)
    assert second.process.returncode == 2
    assert f"another `whisperfleet watch` is at work in {films}" in second.stderr
    first.process.terminate()
    assert first.wait(10) == 0
    assert first.stdout == ""


def test_languages_on_a_service(commands, server, shorts, tmp_path):
    """German recordings only, of those that have no German subtitle."""
    german = shorts[0].with_name("talk_de.flac")
    films = tmp_path / "films"
    films.mkdir()
    for name, source in {"english": shorts[0], "german": german, "subtitled": german}.items():
        (films / f"{name}.flac").write_bytes(source.read_bytes())
    (films / "subtitled.ger.ass").write_text("by hand")
    options = ["--settle", 0.2, "--server", server.url, "--only-language", "German", "--skip-existing"]
    watch = commands.start("watch", films, *options, "--format", "vtt", "--poll", 1)
    wait_for(lambda: len(watch.stdout.splitlines()) == 3, 60)
    skipped = {Path(line.split()[1]).stem: line for line in lines(watch, "skipped")}
    assert "its language is English, not German" in skipped["english"]
    assert "it has German subtitles: subtitled.ger.ass" in skipped["subtitled"]
    assert (films / "german.de.vtt").read_text() == server.text(german, response_format="vtt")
    assert not list(films.glob("*.srt"))
