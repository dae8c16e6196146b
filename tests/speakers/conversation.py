"""Conversations whose voices are made up: a vector for each speaker, and noise as in real embeddings."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from app.transcript.speakers.voices import Embeddings, Voices, pack_voices, voice_windows
from app.transcript.timeline import Transcript
from workers.messages import SAMPLE_RATE, Segment, Span, Word

WORD_S = 0.4


@dataclass(frozen=True)
class Line:
    """A sentence. Its words take 0.4 s each."""

    speaker: str
    words: int
    pause_s: float = 0.5  # before it; 0: it follows without a break
    joined: bool = False  # the model puts it into the segment before it


@dataclass(frozen=True)
class Conversation:
    """A transcript without speakers, the voices of its one clip, and the truth."""

    transcript: Transcript
    voices: Voices
    speakers: dict[str, str]  # by word, each of which is there once

    @property
    def packed(self) -> list[bytes]:
        return [pack_voices(self.voices)]


def voice(speaker: str) -> Embeddings:
    """The voice of a speaker."""
    return _drawn(np.random.default_rng(list(speaker.encode())))


def conversation(lines: Sequence[Line], seed: int = 0) -> Conversation:
    segments: list[Segment] = []
    speech: list[Span] = []
    spoken: list[tuple[int, int, str]] = []
    speakers: dict[str, str] = {}
    at = 0.0
    for line in lines:
        at += line.pause_s
        words = []
        for number in range(line.words):
            text = f" w{len(speakers)}" + ("." if number == line.words - 1 else "")
            words.append(Word(text, _samples(at), _samples(at + WORD_S), 1.0))
            speakers[text] = line.speaker
            at += WORD_S
        start, end = words[0].start, words[-1].end
        spoken.append((start, end, line.speaker))
        touches = speech and start - speech[-1][1] < SAMPLE_RATE // 10
        speech.append((speech.pop()[0] if touches else start, end))
        before = segments.pop().words if line.joined else ()
        segments.append(segment_of((*before, *words)))
    windows = voice_windows(speech)
    embeddings = np.stack([_embedding(window, spoken, seed) for window in windows])
    transcript = Transcript(
        "transcribe", "demo", "en", _samples(at) + SAMPLE_RATE, tuple(speech), tuple(segments)
    )
    return Conversation(transcript, Voices(windows, embeddings), speakers)


def segment_of(words: tuple[Word, ...]) -> Segment:
    text = "".join(word.text for word in words)
    return Segment(words[0].start, words[-1].end, text, (1, 2), 0.0, -0.1, 1.0, 0.0, words)


def _embedding(window: Span, spoken: Sequence[tuple[int, int, str]], seed: int) -> Embeddings:
    mixed = np.zeros(256, np.float32)
    for start, end, speaker in spoken:
        share = max(min(end, window[1]) - max(start, window[0]), 0) / (window[1] - window[0])
        mixed += np.float32(share) * voice(speaker)
    return _unit(_unit(mixed) + np.float32(0.6) * _drawn(np.random.default_rng([seed, *window])))


def _drawn(source: np.random.Generator) -> Embeddings:
    return _unit(source.random(256, np.float32) ** 4)


def _unit(vector: Embeddings) -> Embeddings:
    return vector / np.linalg.norm(vector)


def _samples(seconds: float) -> int:
    return round(seconds * SAMPLE_RATE)
