"""Documents and events of segments agree, however the clips are published and whatever they contain."""

import json
import zlib
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from app.api.transcripts.segment_documents import (
    published_document,
    published_event,
    segments_document,
    transcript_document,
    transcript_events,
)
from app.common.options import Options
from app.jobs.serialization import PackedTranscript, pack_transcript
from app.jobs.storage.published_clips import PackedClip
from app.transcript.edited import EditedSegment
from app.transcript.packed import pack_result
from app.transcript.rendering import clip_segments
from app.transcript.timeline import ClipResult, Transcript
from tests.api.fake_service import segment
from workers.messages import SAMPLE_RATE, Segment, Span, Word

# Longer and shorter than a millisecond, which has 16 samples.
LENGTHS = st.integers(1, 40) | st.integers(1000, 30 * SAMPLE_RATE)
TIMES = st.integers(-100, 31 * SAMPLE_RATE)
TEXTS = st.sampled_from([" text", "Grüße\n", "国", " ", "\u2028"])
WORDS = st.builds(Word, text=TEXTS, start=TIMES, end=TIMES, probability=st.floats(0, 1))
SEGMENTS = st.builds(
    lambda start, end, text, words: Segment(start, end, text, (), 0.0, -0.1, 1.0, 0.0, tuple(words)),
    TIMES,
    TIMES,
    TEXTS,
    st.lists(WORDS, max_size=3),
)
RESULTS = st.builds(
    ClipResult, st.sampled_from(["en", "zh"]), st.just(()), st.lists(SEGMENTS, max_size=20).map(tuple)
)
# Gap before the clip, its length, its result (None: it failed), and whether an event follows it.
CLIPS = st.lists(
    st.tuples(st.integers(0, 1) | LENGTHS, LENGTHS, st.none() | RESULTS, st.booleans()), max_size=12
)
OPTIONS = Options(chinese="traditional")


def fold(known: list[Any], event: dict[str, Any]) -> list[Any]:
    """What a client knows after an event, by the rule in docs/http.md."""
    return [segment for segment in known if segment["start"] < event["from"]] + event["segments"]


@given(CLIPS)
def test_the_events_come_to_the_document_after_each_of_them_and_in_the_end(clips: list[Any]) -> None:
    published: list[PackedClip] = []
    segments: list[Segment] = []
    live: dict[int, bytes] = {}
    spans: dict[int, Span] = {}
    known: list[Any] = []
    end = announced = 0
    for index, (gap, length, result, is_announced) in enumerate(clips):
        span = (end + gap, end + gap + length)
        end = span[1]
        if result is not None:
            published.append(PackedClip(span, pack_result(result)))
            segments += clip_segments(span, result, OPTIONS)
        if is_announced or index == len(clips) - 1:
            spans[index] = (announced, end)
            announced = end
            live[index] = published_event(spans[index], published, OPTIONS)
            known = fold(known, json.loads(live[index]))
            assert known == json.loads(published_document(published, OPTIONS))["segments"]
    transcript = Transcript(
        "transcribe", "demo", "zh", end, (), segments, clips=tuple(clip.span for clip in published)
    )
    packed = pack_transcript(transcript)
    assert json.loads(transcript_document(PackedTranscript(0, packed))) == {
        "revision": 0,
        "complete": True,
        "segments": known,
    }
    stored = {number: zlib.decompress(data) for number, data in transcript_events(packed, spans).items()}
    assert stored == live, "after the end of the job, the events are the same"
    ids = [segment["id"] for segment in known]
    assert len(set(ids)) == len(ids)
    for before, after in pairwise(known):
        assert before["start"] <= before["end"] <= after["start"]
    assert all(b"\n" not in data and b"\r" not in data for data in live.values()), "an event is one line"


def test_a_segment_just_before_the_next_event_at_the_same_millisecond_is_not_lost() -> None:
    """Clips so short that only malicious settings make them."""
    result = ClipResult("en", (), (segment("A.", 0, 1), segment("B.", 0, 1)))
    clips = [PackedClip((start, start + 20), pack_result(result)) for start in (16_000, 16_025)]
    spans = [(0, 16_020), (16_020, 16_045)]
    known: list[Any] = []
    for span in spans:
        known = fold(known, json.loads(published_event(span, clips, Options())))
    assert [(entry["id"], entry["text"]) for entry in known] == [
        ("16000-0", "A."),
        ("16000-1", "B."),
        ("16025-0", "A."),
        ("16025-1", "B."),
    ]


def test_text_has_no_space_around_it_and_times_are_in_seconds() -> None:
    words = (Word(" Grüße", 8_000, 16_007, 0.5), Word(" ", 16_007, 16_007, 0.5))
    one = EditedSegment(8_000, 16_009, " Grüße  ", (), 0, 0, 1, 0, words, id="0-0", speaker="Müller")
    assert json.loads(segments_document(3, True, [one])) == {
        "revision": 3,
        "complete": True,
        "segments": [
            {
                "id": "0-0",
                "start": 0.5,
                "end": 1.001,
                "text": "Grüße",
                "speaker": "Müller",
                "words": [
                    {"word": "Grüße", "start": 0.5, "end": 1.0, "probability": 0.5, "speaker": "Müller"}
                ],
            }
        ],
    }
    assert "Grüße".encode() in segments_document(3, True, [one])


def test_a_document_without_segments() -> None:
    assert json.loads(segments_document(0, False, [])) == {"revision": 0, "complete": False, "segments": []}


def test_segments_of_channels_are_in_order_of_time_as_far_as_all_channels_are() -> None:
    result = pack_result(ClipResult("en", (), (segment("A.", 0, 1), segment("B.", 2, 3))))
    until = 4 * SAMPLE_RATE
    clips = [
        PackedClip((start * SAMPLE_RATE, (start + 3) * SAMPLE_RATE), result, channel, until)
        for start, channel in ((0, 0), (1, 2), (3, 0))
    ]
    options = Options(channels="separate", speaker_names="Ann")
    shown = json.loads(published_document(clips, options))["segments"]
    assert [(entry["id"], entry["text"], entry["speaker"]) for entry in shown] == [
        ("0-0", "A.", "Ann"),
        ("16000-0-2", "A.", None),
        ("0-1", "B.", "Ann"),
        ("48000-0", "A.", "Ann"),
        ("16000-1-2", "B.", None),
    ]
    event = json.loads(published_event((2 * SAMPLE_RATE, until), clips, options))
    assert event["segments"] == shown[2:]
