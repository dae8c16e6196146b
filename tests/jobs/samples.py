"""Submissions, clip results and transcripts to store."""

from dataclasses import replace
from typing import Any

import numpy as np

from app.common.options import Options
from app.jobs.job import Submission
from app.transcript.timeline import ClipResult, Transcript
from tests.sample_peaks import collected
from workers.messages import SAMPLE_RATE, Segment, SoundTrack, Word

SUBMISSION = Submission(
    filename="talk.flac",
    file="0" * 32,
    size=1000,
    sha256="ab" * 32,
    url=None,
    model="demo",
    options=Options(language="en", prompt="Grüße, 世界"),
    webhook_url=None,
    owner="somebody",
    idempotency_key=None,
    fingerprint="f" * 64,
)
SEGMENT = Segment(
    start=8_000,
    end=40_000,
    text=" Grüße an 世界.",
    tokens=(1, 2, 50_364),
    temperature=0.0,
    avg_logprob=-0.1234567890123,
    compression_ratio=1.5,
    no_speech_prob=1e-12,
    words=(Word(" Grüße", 8_000, 16_000, 0.5), Word(" an 世界.", 16_000, 40_000, 0.25)),
)
RESULT = ClipResult("de", (("de", 0.9), ("nl", 0.1)), (SEGMENT, replace(SEGMENT, avg_logprob=-100.0)))
TRANSCRIPT = Transcript(
    task="transcribe",
    model="demo",
    language="de",
    samples=5 * SAMPLE_RATE,
    speech=((0, 48_000), (50_000, 80_000)),
    segments=(SEGMENT, replace(SEGMENT, start=40_000, end=41_000, words=())),
    failed_spans=((60_000, 70_000),),
)
TRACK = SoundTrack(0, "ger", "Kommentar", "flac", 2, default=True)
PEAKS = collected(np.arange(-8000, 8000, dtype=np.int16))


def submission(**changes: Any) -> Submission:
    return replace(SUBMISSION, **changes)
