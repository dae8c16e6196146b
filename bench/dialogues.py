"""Conversations of synthetic voices, of any length, with the truth: who says what, and when.

The voices are those of espeak-ng and flite, which must be installed. Equal arguments make equal recordings.
"""

import io
import random
import subprocess
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import av
import numpy as np
import numpy.typing as npt
import soundfile

from bench.recordings import RATE

Sound = npt.NDArray[np.float32]

_ACCENTS = ("en-us", "en-gb", "en-gb-scotland", "en-gb-x-rp", "en-us-nyc")
_VARIANTS = "f1 f2 f3 f4 f5 m1 m2 m3 m4 m5 m6 m7 m8 Annie Alex Andrea Denis Steph"
_FLITE = ("awb", "rms", "slt", "kal16")

_SUBJECTS = """
the doctor, my sister, our teacher, the old man, the young woman, the farmer, your father, a tired soldier,
the queen, the whole family
"""
_ACTS = """
opens the window, needs more water, saw the moon, reads a long letter, plays the piano, lost the way home,
bought three apples, works very hard, wants to buy bread, asked a simple question
"""
_TIMES = """
today, tomorrow, every day, on Monday, in the evening, in the summer, again, before the storm, with a friend,
"""
_SHORT = ("Yes.", "No.", "Thank you.", "Please.", "Never.", "Hello.")


@dataclass(frozen=True)
class Voice:
    """One speaker."""

    name: str
    program: str  # espeak-ng, or flite
    voice: str
    pitch: int
    speed: int  # words per minute

    def say(self, text: str) -> Sound:
        """The text, at 16 kHz, without silence at its ends."""
        with tempfile.NamedTemporaryFile(suffix=".wav") as file:
            if self.program == "flite":
                stretch = f"duration_stretch={160 / self.speed:.2f}"
                command = ["flite", "-voice", self.voice, "--setf", stretch, "-t", text, "-o", file.name]
            else:
                options = ["-v", self.voice, "-p", str(self.pitch), "-s", str(self.speed)]
                command = ["espeak-ng", *options, "-w", file.name, text]
            subprocess.run(command, check=True, capture_output=True)
            sound = _samples(Path(file.name).read_bytes())
        loud = np.flatnonzero(np.abs(sound) > 0.006)
        sound = sound[loud[0] : loud[-1] + 1]
        return sound * np.float32(0.08 / np.sqrt(np.mean(sound**2)))


@dataclass(frozen=True)
class Cue:
    """A sentence. Times in s."""

    start: float
    end: float
    speaker: str
    text: str


@dataclass(frozen=True)
class Dialogue:
    """A conversation and its truth."""

    sound: npt.NDArray[np.int16]
    cues: list[Cue]

    @property
    def seconds(self) -> float:
        return len(self.sound) / RATE

    def write(self, path: Path) -> None:
        """Write the sound. The suffix of the path says in which format."""
        soundfile.write(path, self.sound, RATE)


@dataclass(frozen=True)
class Kind:
    """How people talk."""

    shares: tuple[float, ...]  # of the turns, one for each speaker
    overlap: float = 0.0  # probability that a turn begins before the one before it has ended
    short: float = 0.1  # probability of a turn of a word or two
    noise_db: float = -90.0  # below full scale


def voices(count: int, seed: int) -> list[Voice]:
    """`count` speakers, none with the voice of another one."""
    source = random.Random(seed)
    choices = [("espeak-ng", variant) for variant in _VARIANTS.split()] + [
        ("flite", voice) for voice in _FLITE
    ]
    speakers = []
    for number, (program, voice) in enumerate(source.sample(choices, count)):
        if program == "espeak-ng":
            voice = f"{source.choice(_ACCENTS)}+{voice}"
        pitch, speed = source.randint(25, 75), source.randint(135, 190)
        speakers.append(Voice(f"V{number + 1}", program, voice, pitch, speed))
    return speakers


def dialogue(kind: Kind, seconds: float, seed: int) -> Dialogue:
    """A conversation of about this length. Each speaker has at least three turns."""
    source = random.Random(seed)
    speakers = voices(len(kind.shares), seed)
    with ThreadPoolExecutor() as threads:
        lines = _script(source, kind, speakers, seconds)
        sounds = list(threads.map(lambda line: line[0].say(line[1]), lines))
    cues: list[Cue] = []
    at = 0.6
    for index, ((voice, text), sound) in enumerate(zip(lines, sounds, strict=True)):
        if index and voice is not lines[index - 1][0]:
            overlaps = source.random() < kind.overlap
            at += -source.uniform(0.3, 1.2) if overlaps else source.uniform(0.05, 0.9)
        elif index:
            at += source.uniform(0.2, 0.6)
        at = max(at, max((cue.end for cue in cues[-20:] if cue.speaker == voice.name), default=0.0))
        cues.append(Cue(at, at + len(sound) / RATE, voice.name, text))
        at = cues[-1].end
    mixed = np.zeros(round((at + 0.6) * RATE), np.float32)
    for cue, sound in zip(cues, sounds, strict=True):
        first = round(cue.start * RATE)
        mixed[first : first + len(sound)] += sound[: len(mixed) - first]
    noise = np.random.default_rng(seed).standard_normal(len(mixed), np.float32)
    mixed += noise * np.float32(10 ** (kind.noise_db / 20))
    return Dialogue((mixed.clip(-1, 1) * 32767).astype(np.int16), cues)


def _script(
    source: random.Random, kind: Kind, speakers: list[Voice], seconds: float
) -> list[tuple[Voice, str]]:
    """Who says what: about 2.6 s for each sentence and the pause after it."""
    turns = max(round(seconds / 2.6 / 1.7), 3 * len(speakers))
    order = [*speakers * 3, *source.choices(speakers, kind.shares, k=turns - 3 * len(speakers))]
    source.shuffle(order)
    lines = []
    for voice in order:
        if source.random() < kind.short:
            lines.append((voice, source.choice(_SHORT)))
        else:
            lines += [(voice, _sentence(source)) for _ in range(source.choice((1, 2, 2, 3)))]
    return lines


def _sentence(source: random.Random) -> str:
    choices = (source.choice(parts.split(",")) for parts in (_SUBJECTS, _ACTS, _TIMES))
    text = " ".join(filter(None, map(str.strip, choices)))
    return text[0].upper() + text[1:] + "."


def _samples(wav: bytes) -> Sound:
    resampler = av.AudioResampler(format="flt", layout="mono", rate=RATE)
    with av.open(io.BytesIO(wav)) as file:
        frames = [*(part for frame in file.decode(audio=0) for part in resampler.resample(frame))]
        frames += resampler.resample(None)
    return np.concatenate([frame.to_ndarray()[0] for frame in frames])
