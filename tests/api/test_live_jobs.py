"""Jobs of live streams: their recording grows while somebody speaks, and is transcribed whole at the end."""

import asyncio
import hashlib
import io
import socket
import time
import wave
from contextlib import suppress

import pytest

from app.api.audio import realtime_sessions
from app.jobs.running import live_job, runner
from app.jobs.storage.store import Store
from app.transcript.timeline import ClipResult
from tests.api.fake_live import FakeLiveService
from tests.api.fake_service import OTHER_MODEL, segment
from tests.api.test_job_events import events
from tests.api.test_realtime import append, ending, opened, received, refusal, sent
from tests.api.waiting import wait_for
from workers.messages import SAMPLE_RATE

SECOND = bytes(range(240)) * 200  # at 24 kHz
JOB = "?job=true"
KEYS = ("ann:sk-ann", "bob:sk-bob")


@pytest.fixture(scope="module", autouse=True)
def _live():
    """The live service of the sites that start."""
    made = FakeLiveService(None)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("app.main.LiveService", lambda service: made)
        yield made


@pytest.fixture(autouse=True)
def live(_live):
    _live.reset()
    return _live


def wav(audio, rate=24_000):
    file = io.BytesIO()
    with wave.open(file, "wb") as output:
        output.setnchannels(1)
        output.setsampwidth(2)
        output.setframerate(rate)
        output.writeframes(audio)
    return file.getvalue()


def begun(site, query=JOB, **options):
    """A client with a stream, and the id of its job."""
    client = opened(site, query, **options)
    return client, received(client)["job_id"]


def play(site, client, live, seconds):
    """Send some seconds, and wait until the stream has them."""
    before = len(live.streams[-1].audio)
    for _ in range(seconds):
        append(client, SECOND)
    wait_for(lambda: len(live.streams[-1].audio) == before + seconds * len(SECOND))


def recording(site, job):
    path = site.service.media.folder.uploads / job
    return path.read_bytes() if path.exists() else b""


def live_text(text, start, end):
    """A clip of a stream from `start` to `end` (s), whose text is all of it."""
    span = (start * SAMPLE_RATE, end * SAMPLE_RATE)
    return span, ClipResult("en", (), (segment(text, 0, end - start),))


def texts(site, job):
    document = site.client.get(f"/v1/jobs/{job}/segments").raise_for_status().json()
    return [segment["text"] for segment in document["segments"]], document["complete"]


def test_the_sound_of_a_stream_is_stored_as_it_comes_and_transcribed_as_an_upload(site, live):
    client, job = begun(site)
    assert site.job(job)["status"] == "running"
    play(site, client, live, 3)
    wait_for(lambda: recording(site, job) == wav(3 * SECOND))
    append(client, SECOND[:480])
    sent(client, "input_audio_buffer.commit")
    assert received(client, "conversation.item.input_audio_transcription.completed")["job_id"] == job
    client.close()
    done = site.finished(job)
    assert (done["status"], done["filename"], done["model"]) == ("succeeded", "live.wav", "tiny")
    [call] = site.service.calls
    assert call.sha256 == hashlib.sha256(wav(3 * SECOND + SECOND[:480])).hexdigest()
    assert texts(site, job) == (["The quick brown fox.", "Über the lazy dog."], True)


def test_the_text_of_the_stream_stays_until_all_is_transcribed(site, live):
    site.service.paused = True
    site.service.clips = [live_text("Final.", 0, 1)] * 2
    client, job = begun(site)
    play(site, client, live, 4)
    stream = live.streams[-1]
    stream.show(*live_text("The quack brown", 2, 3))  # the one before comes later
    stream.show(*live_text("Oh,", 0, 2))
    wait_for(lambda: texts(site, job) == (["Oh,", "The quack brown"], False))
    listed = site.client.get("/v1/jobs").json()["data"][0]
    assert (listed["id"], listed["progress"]["total_s"]) == (job, 4)
    client.close()
    assert site.service.started.wait(10)
    assert texts(site, job) == (["Oh,", "The quack brown"], False)
    site.service.paused = False
    seen = events(site, job)
    kinds = [event.type for event in seen if event.type != "job.progress"]
    assert kinds[0] == "job.running"
    assert kinds[-4:] == ["job.queued", "job.running", "job.segments", "job.succeeded"]
    last = [event.job for event in seen if event.type == "job.segments"][-1]
    assert last["from"] == 0
    assert [each["text"] for each in last["segments"]] == ["The quick brown fox.", "Über the lazy dog."]


@pytest.mark.parametrize("action", ["delete", "trash"])
def test_a_job_that_is_deleted_ends_its_stream(site, live, action):
    client, job = begun(site)
    play(site, client, live, 2)
    if action == "delete":
        site.client.delete(f"/v1/jobs/{job}").raise_for_status()
    else:
        site.client.post(f"/v1/jobs/{job}/trash").raise_for_status()
    told, code = ending(client)
    assert (told[-1]["error"]["code"], code) == ("job_deleted", 1008)
    if action == "delete":
        assert not site.left_files
        return
    site.client.post(f"/v1/jobs/{job}/restore").raise_for_status()
    assert site.finished(job)["status"] == "succeeded"
    assert site.service.calls[-1].sha256 == hashlib.sha256(wav(2 * SECOND)).hexdigest()


def test_an_abandoned_stream_is_a_job_with_what_came(site, live, monkeypatch):
    monkeypatch.setattr(realtime_sessions, "RESUME_S", 0.2)
    client, job = begun(site)
    play(site, client, live, 1)
    append(client, SECOND[:4801])  # and half a sample
    wait_for(lambda: len(live.streams[-1].audio) == len(SECOND) + 4801)
    client.socket.shutdown(socket.SHUT_RDWR)
    assert site.finished(job)["status"] == "succeeded"
    assert site.service.calls[-1].sha256 == hashlib.sha256(wav(SECOND + SECOND[:4800])).hexdigest()
    with suppress(OSError):
        client.close()


def test_a_job_that_was_restored_runs_on_when_its_stream_ends(site, live, monkeypatch):
    monkeypatch.setattr(realtime_sessions, "RESUME_S", 0.5)
    client, job = begun(site)
    play(site, client, live, 1)
    client.socket.shutdown(socket.SHUT_RDWR)
    site.service.paused = True
    for action in ("trash", "restore"):
        site.client.post(f"/v1/jobs/{job}/{action}").raise_for_status()
    wait_for(lambda: live.streams[-1].is_closed)
    time.sleep(0.1)
    assert site.job(job)["status"] == "running"
    site.service.paused = False
    site.finished(job)
    assert [event.type for event in events(site, job)].count("job.queued") == 1
    with suppress(OSError):
        client.close()


def test_a_stream_without_sound_leaves_no_job(site):
    client, job = begun(site)
    client.close()
    wait_for(lambda: site.client.get(f"/v1/jobs/{job}").status_code == 404)


def test_what_the_stream_is_told_counts_for_its_job(site, live):
    client, job = begun(site, f"{JOB}&title=Board&diarize=true")
    transcription = {"model": OTHER_MODEL, "language": "en", "keywords": ["Ada", "Bo"], "prompt": "Hi."}
    audio = {"input": {"format": {"type": "audio/pcmu"}, "transcription": transcription}}
    sent(client, "session.update", session={"type": "transcription", "audio": audio})
    received(client, "session.updated")
    append(client, b"\xff" * 8000)
    audio = {"input": {"format": {"type": "audio/pcm"}}}
    sent(client, "session.update", session={"type": "transcription", "audio": audio})
    assert received(client, "error")["error"]["param"] == "session.audio.input.format"
    client.close()
    done = site.finished(job)
    options = {name: done["options"][name] for name in ("language", "prompt", "hotwords", "diarize")}
    assert options == {"language": "en", "prompt": "Hi.", "hotwords": "Ada, Bo", "diarize": True}
    assert (done["model"], done["title"]) == (OTHER_MODEL, "Board")
    assert site.service.calls[-1].options.hotwords == "Ada, Bo"


def test_the_query_has_all_options_of_a_job(site, live):
    options = "num_speakers=3&diarize=true&profile=bbc&language=de&hotwords=Ada,Bo&tags=board"
    client, job = begun(site, f"{JOB}&{options}&filename=Board.wav")
    assert site.job(job)["progress"]["stage"] == "recording"
    opened_with = live.streams[-1].options
    assert (opened_with.language, opened_with.hotwords) == ("de", "Ada,Bo")
    play(site, client, live, 1)
    client.close()
    done = site.finished(job)
    assert (done["filename"], done["tags"]) == ("Board.wav", ["board"])
    given = {name: done["options"][name] for name in ("num_speakers", "profile", "language", "hotwords")}
    assert given == {"num_speakers": 3, "profile": "bbc", "language": "de", "hotwords": "Ada,Bo"}


def test_a_browser_learns_by_an_event_what_refuses_its_stream(serve, live):
    site = serve(api_keys=KEYS, max_jobs_per_key=1)
    client, _ = begun(site, key="sk-ann")
    with opened(site, JOB, key="sk-ann", subprotocols=["realtime"]) as refused:
        events, code = ending(refused)
    assert [event["type"] for event in events] == ["error"]
    assert (events[0]["error"]["code"], code) == ("queue_full", 1008)
    with opened(site, "?session=sess_none", key="sk-ann", subprotocols=["realtime"]) as refused:
        assert received(refused)["error"]["code"] == "stream_not_found"
    client.close()


def test_an_update_that_changes_nothing_says_how_much_came_and_stores_nothing(site, live, monkeypatch):
    stored = []

    async def configure(self, model, options):
        stored.append(model)

    monkeypatch.setattr(live_job.LiveJob, "configure", configure)
    client, _ = begun(site)
    append(client, SECOND)
    sent(client, "session.update", session={"type": "transcription"})
    assert received(client, "session.updated")["session"]["received_bytes"] == len(SECOND)
    assert not stored
    client.close()


def test_an_owner_has_its_limits_of_jobs_and_others_see_nothing(serve):
    site = serve(api_keys=KEYS, max_jobs_per_key=1)
    client, job = begun(site, key="sk-ann")
    bob = {"authorization": "Bearer sk-bob"}
    assert site.client.get(f"/v1/jobs/{job}", headers=bob).status_code == 404
    with refusal(site, JOB, key="sk-ann") as (status, error):
        assert (status, error["param"]) == (429, None)
    client.close()
    with refusal(site, f"{JOB}&webhook_url=https://x.example", key="sk-ann") as (status, error):
        assert (status, error["code"]) == (400, "webhooks_not_configured")


@pytest.mark.parametrize(
    ("settings", "code"),
    [({"max_upload_mb": 1}, "file_too_large"), ({"owner_storage_mb": 1}, "storage_share_full")],
)
def test_a_recording_has_the_limits_of_uploads(serve, live, settings, code):
    site = serve(**settings)
    site.finished(site.submitted())  # the first count of what is stored has ended by then
    client, job = begun(site)
    for _ in range(21):
        append(client, SECOND)
    told, _ = ending(client)
    assert told[-1]["error"]["code"] == code
    assert site.finished(job)["status"] == "succeeded"
    assert site.service.calls[-1].sha256 == hashlib.sha256(wav(20 * SECOND)).hexdigest()


def test_a_service_that_stops_has_the_job_when_it_starts_again(serve, live, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "_POLL_S", 0.01)
    first = serve(data_dir=tmp_path)
    client, job = begun(first)
    play(first, client, live, 1)
    time.sleep(0.2)
    assert first.job(job)["status"] == "running", "it is no orphan"
    first.server.should_exit = True
    told, code = ending(client)
    assert (told[-1]["error"]["code"], code) == ("service_stopping", 1012)
    wait_for(lambda: not first.service.running)
    second = serve(data_dir=tmp_path)
    time.sleep(0.2)
    assert second.job(job)["status"] == "running", "it waits for its client"
    with refusal(second, f"{JOB}&job_id={'0' * 32}") as (status, _):
        assert status == 404
    client = opened(second, f"{JOB}&job_id={job}")
    created = received(client)
    assert (created["job_id"], created["session"]["received_bytes"]) == (job, len(SECOND))
    assert created["session"]["audio"]["input"]["format"]["type"] == "audio/pcm"
    play(second, client, live, 2)
    live.streams[-1].show(*live_text("And on.", 1, 2))
    wait_for(lambda: seen_segments(second, job)[0])
    assert seen_segments(second, job)[0][0]["start"] == 2
    client.close()
    assert second.finished(job)["status"] == "succeeded"
    assert second.service.calls[-1].sha256 == hashlib.sha256(wav(3 * SECOND)).hexdigest()
    with refusal(second, f"{JOB}&job_id={job}") as (status, error):
        assert (status, error["param"]) == (404, "job_id")


@pytest.mark.parametrize("action", [None, "trash"])
def test_a_job_whose_client_does_not_come_back(serve, live, tmp_path, monkeypatch, action):
    monkeypatch.setattr(runner, "_POLL_S", 0.01)
    monkeypatch.setattr(runner, "RETURN_S", 0.5)
    first = serve(data_dir=tmp_path)
    client, job = begun(first)
    play(first, client, live, 1)
    first.server.should_exit = True
    ending(client)
    wait_for(lambda: not first.service.running)
    second = serve(data_dir=tmp_path)
    if action is not None:
        for each in (action, "restore"):
            second.client.post(f"/v1/jobs/{job}/{each}").raise_for_status()
        with refusal(second, f"{JOB}&job_id={job}") as (status, _):
            assert status == 404
    assert second.finished(job)["status"] == "succeeded"
    assert second.service.calls[-1].sha256 == hashlib.sha256(wav(SECOND)).hexdigest()


def seen_segments(site, job):
    """The segments of a job as a client knows them, and the ETag with which it corrects them."""
    response = site.client.get(f"/v1/jobs/{job}/segments").raise_for_status()
    return response.json()["segments"], response.headers["etag"]


def corrected(site, job, segments, etag):
    headers = {"if-match": etag}
    return site.client.put(f"/v1/jobs/{job}/segments", json={"segments": segments}, headers=headers)


def test_what_people_correct_while_it_runs_is_kept_at_the_end(site, live):
    client, job = begun(site, f"{JOB}&title_from_text=true")
    play(site, client, live, 4)
    live.streams[-1].show(*live_text("The quick brown", 0, 2))
    wait_for(lambda: seen_segments(site, job)[0])
    segments, etag = seen_segments(site, job)
    live.streams[-1].show(*live_text("lazy dog", 2, 4))
    wait_for(lambda: len(texts(site, job)[0]) == 2)
    segments[0] |= {"text": "The quick brown box.", "speaker": "An"}
    answer = corrected(site, job, segments, etag).raise_for_status()
    document = answer.json()
    so_far = ["The quick brown box.", "lazy dog"]
    assert (document["revision"], document["complete"]) == (0, False)
    assert [segment["text"] for segment in document["segments"]] == so_far
    assert answer.headers["etag"] == seen_segments(site, job)[1]
    assert texts(site, job) == (so_far, False)
    headers = {"if-match": answer.headers["etag"]}
    renamed = site.client.post(f"/v1/jobs/{job}/speakers", json={"names": {"An": "Ann"}}, headers=headers)
    assert renamed.raise_for_status().json()["segments"][0]["speaker"] == "Ann"
    site.client.patch(f"/v1/jobs/{job}", json={"tags": ["q3"]}).raise_for_status()
    client.close()
    done = site.finished(job)
    assert (done["revision"], done["tags"], done["speakers"]) == (1, ["q3"], ["Ann"])
    assert done["title"] == "The quick brown box. Über the lazy dog."
    assert texts(site, job) == (["The quick brown box.", "Über the lazy dog."], True)
    original = site.client.get(f"/v1/jobs/{job}/segments?revision=original").json()["segments"]
    assert [segment["text"] for segment in original] == ["The quick brown fox.", "Über the lazy dog."]
    newest, _ = seen_segments(site, job)
    assert newest[1] == original[1], "nobody has corrected it"
    listed = site.client.get(f"/v1/jobs/{job}/revisions").json()["data"]
    assert [(each["revision"], each["reason"]) for each in listed] == [(1, "corrected"), (0, None)]
    seen = [event.job for event in events(site, job) if event.type == "job.segments"]
    assert [segment["text"] for segment in seen[-1]["segments"]] == [each["text"] for each in newest]


def test_a_correction_of_text_that_has_changed_is_refused(site, live):
    client, job = begun(site)
    assert corrected(site, job, [], "*").status_code == 409, "it has no text yet"
    play(site, client, live, 4)
    live.streams[-1].show(*live_text("lazy dog", 2, 4))
    wait_for(lambda: seen_segments(site, job)[0])
    segments, etag = seen_segments(site, job)
    live.streams[-1].show(*live_text("Late.", 0, 2))
    wait_for(lambda: len(texts(site, job)[0]) == 2)
    segments[0]["text"] = "Lazy dog"
    assert corrected(site, job, segments, etag).status_code == 412
    assert corrected(site, job, segments, '"1"').status_code == 412
    segments, etag = seen_segments(site, job)
    corrected(site, job, segments[:1], etag).raise_for_status()
    assert corrected(site, job, segments, etag).status_code == 412
    headers = {"if-match": "*"}
    for body in ({"revision": 0}, {"segments": [{}]}):
        answer = site.client.put(f"/v1/jobs/{job}/segments", json=body, headers=headers)
        assert answer.status_code == 400
    voices = site.client.post(f"/v1/jobs/{job}/speakers", json={"num_speakers": 2}, headers=headers)
    assert voices.status_code == 409
    assert texts(site, job) == (["Late."], False)
    client.close()
    site.finished(job)
    assert corrected(site, job, segments, etag).status_code == 412


def test_corrections_outlive_a_restart_and_the_trash(serve, live, tmp_path, monkeypatch):
    monkeypatch.setattr(runner, "RETURN_S", 0.1)
    monkeypatch.setattr(runner, "_POLL_S", 0.01)
    first = serve(data_dir=tmp_path)
    client, job = begun(first)
    play(first, client, live, 4)
    live.streams[-1].show(*live_text("The quick brown", 0, 2))
    wait_for(lambda: seen_segments(first, job)[0])
    segments, _ = seen_segments(first, job)
    segments[0]["text"] = "The quick brown box."
    corrected(first, job, segments, "*").raise_for_status()
    for action in ("trash", "restore"):
        first.service.paused = True
        first.client.post(f"/v1/jobs/{job}/{action}").raise_for_status()
    assert texts(first, job) == (["The quick brown box."], False)
    first.server.should_exit = True
    wait_for(lambda: not first.service.running)
    second = serve(data_dir=tmp_path)
    second.finished(job)
    assert texts(second, job) == (["The quick brown box.", "Über the lazy dog."], True)


def test_text_that_comes_while_a_correction_is_made_stays(site, live, monkeypatch):
    client, job = begun(site)
    play(site, client, live, 4)
    live.streams[-1].show(*live_text("The quick brown", 0, 2))
    wait_for(lambda: seen_segments(site, job)[0])
    segments, _ = seen_segments(site, job)
    store = Store.correct_live_text

    async def late(self, *correction):
        monkeypatch.setattr(Store, "correct_live_text", store)
        live.streams[-1].on_clip(*live_text("lazy dog", 2, 4))
        while len(await self.segments_events(correction[0], 0)) < 2:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        return await store(self, *correction)

    monkeypatch.setattr(Store, "correct_live_text", late)
    segments[0]["text"] = "The quick brown box."
    document = corrected(site, job, segments, "*").raise_for_status().json()
    assert [segment["text"] for segment in document["segments"]] == ["The quick brown box.", "lazy dog"]
    client.close()
