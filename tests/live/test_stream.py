"""A live stream: any audio in any pieces, with commits, faults and crashes between."""

import asyncio
import errno
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.common.errors import (
    ClipFailed,
    DiskFull,
    InsufficientQuota,
    NotReady,
    ProcessCrashed,
    StreamRefused,
)
from app.engines.window_request import WindowRequest
from app.intake.budgets import Allowance, Budgets, Used
from app.live import decoder
from app.live import stream as stream_module
from app.live.audio import FILE_SAMPLES
from app.live.detection import Speaker, SpeechDetection
from app.live.events import (
    Agreed,
    Cleared,
    Committed,
    Completed,
    Failed,
    LiveEvent,
    SpeechStarted,
    SpeechStopped,
    StreamOptions,
    TurnDetection,
)
from app.live.stream import LEAST_COMMIT_S, LiveStream
from app.pool.tasks import TaskResult
from tests.event_loop import let_tasks_run, until
from tests.live import streams
from tests.live.streams import FakeDispatcher, detect_in, loud, opened_stream, silent, words_in
from workers.messages import FRAME_SAMPLES, PCM_16K, SAMPLE_RATE, NewAudio, Window, WindowResult, Word

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

BY_COMMIT = StreamOptions(turns=None)


def texts(events: list[LiveEvent]) -> list[str]:
    """The texts of the items, in their order."""
    completed = [event for event in events if isinstance(event, Completed)]
    return [event.text for event in sorted(completed, key=lambda event: event.item)]


def files_in(folder: Path) -> list[Path]:
    return list(folder.iterdir())


def stored_bytes(folder: Path) -> int:
    """What the files of a folder take on the disk."""
    return sum(path.stat().st_blocks * 512 for path in files_in(folder))


def agreed(events: list[LiveEvent]) -> dict[int, str]:
    sent: defaultdict[int, str] = defaultdict(str)
    for event in events:
        if isinstance(event, Agreed):
            sent[event.item] += event.text
    return sent


async def test_words_come_while_they_are_spoken_and_the_text_when_the_turn_ends(tmp_path: Path) -> None:
    async with opened_stream(tmp_path) as (stream, events):
        for piece in (silent(1), *[loud(0.5)] * 6, silent(1)):
            await stream.append(piece)
            await asyncio.sleep(0.01)
        await stream.finish()
    kinds = [type(event) for event in events if not isinstance(event, Agreed)]
    assert kinds == [SpeechStarted, SpeechStopped, Committed, Completed]
    assert texts(events) == ["w2 w3 w4 w5 w6 w7"]
    committed = next(at for at, event in enumerate(events) if isinstance(event, Committed))
    assert agreed(events[:committed])[0].startswith("w2 w3 w4")
    assert agreed(events)[0] == "w2 w3 w4 w5 w6 w7"
    assert not files_in(tmp_path)


async def test_much_audio_at_once_has_words_that_drafts_agree_on(tmp_path: Path) -> None:
    said = []
    async with opened_stream(tmp_path) as (stream, events):
        await stream.append(silent(1) + loud(0.5))  # too short for two drafts
        await let_tasks_run()
        assert not agreed(events)
        for _ in range(2):
            await stream.append(loud(1))
            await let_tasks_run()
            said.append(agreed(events)[0])
    assert said == ["w2 w3", "w2 w3 w4"]


async def test_a_draft_that_waits_has_the_speech_that_comes_meanwhile(tmp_path: Path) -> None:
    dispatcher = FakeDispatcher(delay_s=0.05)
    async with opened_stream(tmp_path, dispatcher=dispatcher) as (stream, _):
        for _ in range(10):
            await stream.append(loud(0.25))
            await stream._audio.until_examined()
        assert not dispatcher.windows
        await until(lambda: len(dispatcher.windows) > 0)
    window, is_draft = dispatcher.windows[0]
    assert (window.samples, is_draft) == (pytest.approx(2.5 * SAMPLE_RATE, abs=2 * FRAME_SAMPLES), True)


async def test_people_may_repeat_what_they_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def repeated(pcm: bytes, start: int) -> Iterator[Word]:
        for word in words_in(pcm, start):
            yield replace(word, text=f" w{int(word.text[2:]) % 8}")

    monkeypatch.setattr(streams, "words_in", repeated)
    async with opened_stream(tmp_path) as (stream, events):
        for _ in range(24):
            await stream.append(loud(0.5))
            await asyncio.sleep(0.01)
        said = agreed(events)[0]
    assert said.count("w0 w1 w2 w3 w4") == 3


pieces = st.one_of(
    st.builds(loud, st.integers(1, 60).map(lambda steps: steps / 20)),
    st.builds(silent, st.integers(1, 60).map(lambda steps: steps / 20)),
    st.sampled_from(["commit", "wait"]),
)


@settings(deadline=None, max_examples=60)
@given(st.lists(pieces, max_size=15), st.sampled_from([StreamOptions(), BY_COMMIT]), st.integers(100, 40_000))
def test_no_word_is_lost_or_said_twice(
    actions: list[bytes | str], options: StreamOptions, piece_bytes: int
) -> None:
    async def speak(folder: Path) -> list[LiveEvent]:
        async with opened_stream(folder, options) as (stream, events):
            for action in actions:
                if action == "commit":
                    with suppress(StreamRefused):  # too little audio
                        stream.commit()
                elif action == "wait":
                    await asyncio.sleep(0.001)
                else:
                    assert isinstance(action, bytes)
                    for first in range(0, len(action), piece_bytes):
                        await stream.append(action[first : first + piece_bytes])
            await stream.finish()
        return events

    with tempfile.TemporaryDirectory() as folder:
        events = asyncio.run(speak(Path(folder)))
        assert not [*Path(folder).iterdir()]
    spoken = b"".join(action for action in actions if isinstance(action, bytes))
    said = " ".join(texts(events)).split()
    expected = ["".join(word.text.split()) for word in words_in(spoken, 0)]
    assert said == sorted(set(said), key=lambda word: int(word[1:]))
    # A commit may cut a word, and less than a quarter of a second alone is no speech.
    cuts = actions.count("commit") * 2 + len(actions)
    assert set(said) <= set(expected)
    assert len(expected) - len(said) <= cuts
    committed = [event.item for event in events if isinstance(event, Committed)]
    assert committed == sorted(set(committed))
    assert sorted(event.item for event in events if isinstance(event, Completed)) == committed
    for event in events:
        if isinstance(event, Completed):
            assert agreed(events).get(event.item, "") == event.text


async def test_no_word_is_sent_twice_where_a_clip_ends_before_its_last_draft(tmp_path: Path) -> None:
    async with opened_stream(tmp_path) as (stream, events):
        for _ in range(40):
            await stream.append(loud(0.5))
            await let_tasks_run()
        await stream.append(silent(0.3) + bytes(FRAME_SAMPLES))  # no end of the turn
        for _ in range(30):
            await stream.append(loud(0.5))
            await let_tasks_run()
        await stream.finish()
    [text] = texts(events)
    assert agreed(events)[0] == text
    assert len(text.split()) > 60


async def test_the_text_of_a_long_turn_comes_when_the_audio_ends_in_it(tmp_path: Path) -> None:
    async with opened_stream(tmp_path) as (stream, events):
        for _ in range(25):
            await stream.append(loud(5))
        async with asyncio.timeout(10):
            await stream.finish()
    [text] = texts(events)
    assert text.startswith("w0 ")
    assert len(text.split()) > 240  # clips without a pause between them cut words


async def test_only_commits_end_items_if_the_client_wants_that(tmp_path: Path) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, events):
        for piece in (loud(2), silent(12), loud(2)):  # the silence divides clips
            await stream.append(piece)
            await asyncio.sleep(0.01)
        stream.commit()
        await stream.append(silent(1))
        stream.commit()
        await stream.finish()
    assert texts(events) == ["w0 w1 w2 w3 w28 w29 w30 w31", ""]
    assert not any(isinstance(event, SpeechStarted | SpeechStopped) for event in events)
    lengths = {event.item: event.samples for event in events if isinstance(event, Completed)}
    # Items end with a frame.
    assert lengths[0] == pytest.approx(16 * SAMPLE_RATE, abs=2 * FRAME_SAMPLES)
    assert lengths[1] == pytest.approx(SAMPLE_RATE, abs=2 * FRAME_SAMPLES)


async def test_a_commit_without_audio_is_refused(tmp_path: Path) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, _):
        await stream.append(silent(LEAST_COMMIT_S / 2))
        with pytest.raises(StreamRefused, match="too little audio"):
            stream.commit()
        await stream.close()
        with pytest.raises(StreamRefused, match="has ended"):
            await stream.append(silent(1))


async def test_the_least_that_can_be_committed_may_be_committed_again_and_again(tmp_path: Path) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, events):
        for _ in range(10):
            await stream.append(silent(LEAST_COMMIT_S))
            stream.commit()
        await stream.finish()
    assert sum(isinstance(event, Completed) for event in events) == 10


async def test_audio_behind_a_commit_counts_for_the_next_one(tmp_path: Path) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, events):
        for _ in range(3):
            await stream.append(loud(1))
            stream.commit()
            await stream.append(silent(LEAST_COMMIT_S))
            await let_tasks_run()
            stream.commit()
        await stream.finish()
    assert len(texts(events)) == 6


async def test_what_is_cleared_has_no_text(tmp_path: Path) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, events):
        await stream.append(loud(2))
        stream.clear()
        await stream.append(loud(2))
        stream.commit()
        await stream.finish()
    assert sum(isinstance(event, Cleared) for event in events) == 1
    # The new item begins on a frame.
    assert texts(events)[0].split()[-3:] == ["w5", "w6", "w7"]
    assert "w3" not in texts(events)[0]


async def test_times_are_right_behind_many_clears(tmp_path: Path) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, events):
        for _ in range(40):
            await stream.append(silent(0.5))
            stream.clear()
        await stream.append(loud(2) + silent(0.1))
        stream.commit()
        await stream.finish()
    assert texts(events) == ["w40 w41 w42 w43"]


async def test_speech_behind_the_end_of_a_turn_can_be_committed(tmp_path: Path) -> None:
    async with opened_stream(tmp_path) as (stream, events):
        await stream.append(loud(1) + silent(1) + loud(1) + silent(0.1))  # more than the first turn
        await stream._audio.until_examined()
        stream.commit()
        await until(lambda: len(texts(events)) == 2)
    assert texts(events) == ["w0 w1", "w4 w5"]


async def test_each_commit_is_answered(tmp_path: Path) -> None:
    async with opened_stream(tmp_path) as (stream, events):
        await stream.append(silent(1))
        stream.configure(BY_COMMIT)  # what came before belongs to no item
        stream.commit()
        await stream.finish()
    assert texts(events) == [""]


async def test_silence_ends_an_item_that_began_before_it_did(tmp_path: Path) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, events):
        await stream.append(loud(1))
        await let_tasks_run()
        stream.configure(StreamOptions())
        for piece in (loud(1), silent(1), loud(1), silent(1)):
            await stream.append(piece)
        await stream._audio.until_examined()
        await until(lambda: len(texts(events)) == 2)
    assert texts(events) == ["w0 w1 w2 w3", "w6 w7"]


@pytest.mark.parametrize("first", [BY_COMMIT, StreamOptions()])
async def test_silence_ends_no_item_once_the_client_commits(tmp_path: Path, first: StreamOptions) -> None:
    async with opened_stream(tmp_path, first) as (stream, events):
        await stream.append(loud(1))
        await let_tasks_run()
        for options in (StreamOptions(), BY_COMMIT):
            stream.configure(options)
        await stream.append(silent(1) + loud(1) + silent(1))
        await stream._audio.until_examined()
        assert not any(isinstance(event, Committed) for event in events)
        stream.commit()
        await stream.finish()
    assert texts(events) == ["w0 w1 w4 w5"]


async def test_the_audio_of_an_item_counts_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "MAX_UNCOMMITTED_S", 10.0)
    async with opened_stream(tmp_path) as (stream, _):
        await stream.append(silent(12) + loud(1))
        await stream._audio.until_examined()
        stream.configure(BY_COMMIT)
        await let_tasks_run()
        await stream.append(loud(8))
        await stream._audio.until_examined()
        with pytest.raises(StreamRefused, match="not committed"):
            await stream.append(loud(2))


async def test_what_follows_a_clear_begins_with_a_whole_sample(tmp_path: Path) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, _):
        await stream.append(silent(1) + b"\0")
        stream.clear()
        await stream.append(loud(1))
        await stream._audio.until_examined()
        stored = stream._audio.file.path.read_bytes()
    assert stored == silent(1) + loud(1)


async def test_an_elected_language_counts_if_the_client_expects_it(tmp_path: Path) -> None:
    dispatcher = FakeDispatcher()
    async with opened_stream(tmp_path, dispatcher=dispatcher) as (stream, _):
        for languages in ((), (), ("fr", "en"), ("fr", "es")):
            stream.configure(StreamOptions(languages=languages))
            await stream.append(loud(1) + silent(1))
            await stream._audio.until_examined()
            await let_tasks_run()
        await stream.finish()
    asked = [window.decoding.language for window, is_draft in dispatcher.windows if not is_draft]
    assert asked[:4] == [None, None, "en", None]


async def test_samples_may_be_cut_anywhere(tmp_path: Path) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, _):
        audio = loud(1)
        await stream.append(audio[:999])
        stream.configure(BY_COMMIT)
        await stream.append(audio[999:])
        await stream._audio.until_examined()
        stored = stream._audio.file.path.read_bytes()
    assert stored == loud(1)


async def test_options_count_from_the_next_item_on(tmp_path: Path) -> None:
    dispatcher = FakeDispatcher()
    async with opened_stream(tmp_path, StreamOptions(language="de"), dispatcher) as (stream, events):
        await stream.append(loud(2))
        stream.configure(StreamOptions(language="fr"))
        for piece in (loud(1), silent(1), loud(1), silent(1)):
            await stream.append(piece)
        await stream.finish()
    assert [event.language for event in events if isinstance(event, Completed)] == ["de", "fr"]


async def test_a_worker_that_dies_costs_drafts_alone(tmp_path: Path) -> None:
    def crash(window: Window, is_draft: bool) -> None:
        if is_draft:
            raise ProcessCrashed("process 4711 crashed")

    dispatcher = FakeDispatcher(on_window=crash)
    async with opened_stream(tmp_path, dispatcher=dispatcher) as (stream, events):
        for piece in (*[loud(0.5)] * 6, silent(1)):
            await stream.append(piece)
            await asyncio.sleep(0.01)
        await stream.finish()
    assert texts(events) == ["w0 w1 w2 w3 w4 w5"]
    # What it examined may be why: no other draft has it.
    assert sum(is_draft for _, is_draft in dispatcher.windows) == 1


async def test_a_stream_that_comes_faster_than_speech_has_one_urgent_clip_at_a_time(tmp_path: Path) -> None:
    dispatcher = FakeDispatcher(delay_s=0.05)
    async with opened_stream(tmp_path, dispatcher=dispatcher) as (stream, _):
        for turns in (3, 1):
            await stream.append((loud(2) + silent(1)) * turns)
            await stream.finish()
    assert dispatcher.urgent_clips == [True, False, False, True]


async def test_closed_speech_waits_for_a_worker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(decoder, "_RETRY_S", 0.01)
    refused = 0

    def refuse(window: Window, is_draft: bool) -> None:
        nonlocal refused
        refused += 1
        if refused < 5:
            raise NotReady("no worker could be started")

    async with opened_stream(tmp_path, dispatcher=FakeDispatcher(on_window=refuse)) as (stream, events):
        await stream.append(loud(2) + silent(1))
        await stream.finish()
    assert texts(events) == ["w0 w1 w2 w3"]


async def test_a_clip_that_fails_is_said_and_the_stream_goes_on(tmp_path: Path) -> None:
    def fail(window: Window, is_draft: bool) -> None:
        if not is_draft and window.start < SAMPLE_RATE:
            raise RuntimeError("no such token")

    dispatcher = FakeDispatcher(on_window=fail)
    async with opened_stream(tmp_path, dispatcher=dispatcher) as (stream, events):
        for seconds in (4, 1, 1, 1):
            await stream.append(loud(seconds) + silent(1))
            await let_tasks_run()
        await stream.finish()
    [failed] = [event for event in events if isinstance(event, Failed)]
    assert failed.item == 0
    assert isinstance(failed.error, ClipFailed)
    assert "no such token" in failed.error.message
    assert [event.item for event in events if isinstance(event, Completed)] == [1, 2, 3]
    assert dispatcher.windows[-1][0].decoding.language == "en"  # the vote did not wait for it


async def test_audio_ahead_of_its_hearing_waits_with_the_client(tmp_path: Path) -> None:
    async with opened_stream(tmp_path) as (stream, _):
        await stream.append(silent(2))
        sending = asyncio.create_task(stream.append(silent(10), PCM_16K))
        await asyncio.sleep(0)
        assert not sending.done()
        await sending


async def test_long_streams_leave_no_old_audio_behind(tmp_path: Path) -> None:
    async with opened_stream(tmp_path) as (stream, events):
        most = 0
        for _ in range(120):
            await stream.append(loud(3) + silent(1))
            await asyncio.sleep(0)
            most = max(most, stored_bytes(tmp_path))
        await stream.finish()
    assert len(texts(events)) == 120
    assert all(len(text.split()) == 6 for text in texts(events))
    assert most < 2 * (FILE_SAMPLES + 60 * SAMPLE_RATE) * 2
    assert not files_in(tmp_path)


async def test_a_folder_that_is_gone_ends_the_stream_with_a_reason(tmp_path: Path) -> None:
    async with opened_stream(tmp_path / "none") as (stream, _):
        await stream.append(loud(3))
        await until(lambda: stream.fault is not None)
        with pytest.raises(StreamRefused, match="cannot store"):
            await stream.append(loud(3))
        await stream.finish()


async def test_a_text_without_its_last_audio_does_not_count_as_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, events):
        await stream.append(loud(2))
        await stream._audio.until_examined()
        monkeypatch.setattr(streams, "detect_in", lambda new: OSError(errno.ENOSPC, "full"))
        with suppress(DiskFull):
            await stream.append(loud(1))
        stream._audio.then(stream._commit)
        await stream.finish()
    [failed] = [event for event in events if isinstance(event, Completed | Failed)]
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, DiskFull)


async def test_a_turn_detection_by_the_client_takes_the_place_of_commits(tmp_path: Path) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, events):
        stream.configure(StreamOptions(turns=TurnDetection(silence_duration_ms=300)))
        await stream.append(loud(1) + silent(0.5) + loud(1) + silent(0.5))
        await stream.finish()
    assert sum(isinstance(event, SpeechStopped) for event in events) == 2


@pytest.mark.parametrize("crashed", [False, True])
async def test_audio_that_is_examined_after_the_end_leaves_no_file(tmp_path: Path, crashed: bool) -> None:
    async with opened_stream(tmp_path) as (stream, _):
        audio = stream._audio
        new = await under_way(stream)
        await stream.close()
        detected = detect_in(new)  # which writes the file
        if crashed:
            audio.failed()
        else:
            audio.detected(detected)
        await asyncio.wait(set(audio._removing))
    assert not files_in(tmp_path)


async def test_while_it_is_open_the_workers_expect_urgent_tasks(tmp_path: Path) -> None:
    dispatcher = FakeDispatcher()
    async with opened_stream(tmp_path, dispatcher=dispatcher) as (stream, _):
        assert dispatcher.streams == 1
        await stream.close()
        await stream.close()
        assert dispatcher.streams == 0


async def test_a_stream_that_ends_begins_no_draft(tmp_path: Path) -> None:
    class Busy(FakeDispatcher):
        async def until_ended(self, job: str) -> None:
            ended.set()
            await asyncio.sleep(0.05)

    dispatcher, ended = Busy(), asyncio.Event()
    async with opened_stream(tmp_path, dispatcher=dispatcher) as (stream, _):
        audio = stream._audio
        audio._detection = LateDetection()
        await stream.append(loud(2))
        new = audio.next_audio()
        assert new is not None
        closing = asyncio.create_task(stream.close())
        await ended.wait()
        audio.detected(detect_in(new))
        await closing
    assert dispatcher.windows == []
    assert not files_in(tmp_path)


class LateDetection(SpeechDetection):
    """Finds nothing by itself."""

    def wake(self, stream: Speaker) -> None: ...


async def under_way(stream: LiveStream) -> NewAudio:
    """Audio of a stream whose examination has begun, and does not end by itself."""
    stream._audio._detection = LateDetection()
    await stream.append(loud(1))
    new = stream._audio.next_audio()
    assert new is not None
    return new


async def test_audio_ahead_of_the_workers_waits_with_the_client(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "MAX_UNDECODED_SAMPLES", 3 * SAMPLE_RATE)
    free = asyncio.Event()

    class Busy(FakeDispatcher):
        async def submit(self, job: str, payload: WindowRequest, **others: Any) -> TaskResult[WindowResult]:
            await free.wait()
            return await super().submit(job, payload, **others)

    async with opened_stream(tmp_path, dispatcher=Busy()) as (stream, events):
        sent = 0
        while True:
            await stream.append(loud(1) + silent(1))
            sent += 1
            try:
                async with asyncio.timeout(0.05):
                    await stream.until_ready()
            except TimeoutError:
                break
        assert sent < 6
        assert stream.owes_text
        free.set()
        await stream.until_ready()
        await stream.finish()
        assert not stream.owes_text
        assert sum(isinstance(event, Completed) for event in events) == sent


@pytest.mark.parametrize("seconds", [0, 0.001])
async def test_things_ahead_of_the_next_one_are_limited(tmp_path: Path, seconds: float) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, events):
        for _ in range(101):
            await stream.append(silent(seconds))
            stream.configure(BY_COMMIT)
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0):
                await stream.until_ready()
        await stream.until_ready()
        await stream.close()
        assert not events


async def test_nothing_begins_behind_a_fault_that_comes_while_audio_is_examined(tmp_path: Path) -> None:
    async with opened_stream(tmp_path) as (stream, events):
        audio = stream._audio
        new = await under_way(stream)
        audio.fail(DiskFull("There is no space left."))
        await stream.finish()
        audio.detected(detect_in(new))
        await stream.finish()
    assert events == []


async def test_a_disk_that_fills_ends_the_stream_with_its_texts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stream_module, "_CHECK_SPACE_S", 2.0)
    async with opened_stream(tmp_path) as (stream, events):
        stream._has_space = lambda: False
        await stream.append(loud(1) + silent(0.9))
        with pytest.raises(DiskFull):
            await stream.append(silent(1))
        await stream.finish()
    assert [event.text for event in events if isinstance(event, Completed)] == ["w0 w1"]


async def test_turns_that_the_service_finds_begin_in_the_middle_of_speech(tmp_path: Path) -> None:
    async with opened_stream(tmp_path, BY_COMMIT) as (stream, events):
        await stream.append(loud(2))
        stream.configure(StreamOptions())
        await stream.append(loud(1) + silent(1))
        await stream.finish()
    found = [event for event in events if not isinstance(event, Agreed)]
    assert [type(event) for event in found] == [SpeechStarted, SpeechStopped, Committed, Completed]


@pytest.fixture
def budgets(tmp_path: Path) -> Budgets:
    (tmp_path / "budgets").write_text("alice:0.1")  # 6 s
    return Budgets(tmp_path / "budgets")


async def test_turns_are_charged_as_they_are_completed_and_silence_is_free(
    tmp_path: Path, budgets: Budgets
) -> None:
    used: list[Used] = []
    budgets.on_charge = used.append
    async with opened_stream(tmp_path, allowance=Allowance(budgets, "alice")) as (stream, events):
        for piece in (silent(8), loud(1), silent(1), loud(1), silent(8)):
            await stream.append(piece)
        await stream.finish()
    lengths = [event.samples / SAMPLE_RATE for event in events if isinstance(event, Completed)]
    assert [one.seconds for one in used] == pytest.approx(lengths)
    assert [(one.owner, one.model, one.jobs) for one in used] == [
        ("alice", "model", 1),
        ("alice", "model", 0),
    ]
    assert budgets.left("alice") == pytest.approx(6 - sum(lengths))


async def test_a_stream_ends_where_its_budget_does(tmp_path: Path, budgets: Budgets) -> None:
    async with opened_stream(tmp_path, allowance=Allowance(budgets, "alice")) as (stream, events):

        async def speak() -> None:
            while stream._received_s < 20:
                await stream.append(loud(0.5))
                await stream._audio.until_examined()

        with pytest.raises(InsufficientQuota, match=r"0\.1 of your 0\.1 minutes"):
            await speak()
        assert 6 < stream._received_s < 8
        with pytest.raises(InsufficientQuota):
            await stream.append(loud(0.5))
        await stream.finish()
    kinds = [type(event) for event in events if not isinstance(event, Agreed)]
    assert kinds == [SpeechStarted, SpeechStopped, Committed, Failed]


@pytest.mark.parametrize("clears", [True, False])
async def test_drafts_that_a_client_has_are_not_free(tmp_path: Path, budgets: Budgets, clears: bool) -> None:
    async with opened_stream(tmp_path, BY_COMMIT, allowance=Allowance(budgets, "alice")) as (stream, events):
        for _ in range(6):
            await stream.append(loud(0.5))
            await asyncio.sleep(0.01)
        await until(lambda: any(isinstance(event, Agreed) for event in events))
        if clears:
            stream.clear()
            await until(lambda: any(isinstance(event, Cleared) for event in events))
    assert budgets.left("alice") == pytest.approx(3, abs=0.1)
