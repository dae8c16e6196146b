"""How exact word times are, in talks of espeak-ng, which says when it begins each word.

    .venv/bin/python bench/word_times.py [--model FOLDER] [--url http://localhost:8000]
        [--language en] [--json OUT]

Needs libespeak-ng 1.51 or later (Debian: espeak-ng). The sentences are those of the talks in tests/data, and
the starts of words are compared: ends are starts of the next words, but before pauses. Prints Markdown.
"""

import ctypes
import json
import random
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from app.engines.model_files import DEMO_PATH
from bench.command import parser_of
from bench.live_scores import LATE_S, TimedWord, matches
from bench.live_streams import Sound, upload
from bench.measuring import markdown, write_json
from bench.quality import normalise
from bench.recordings import RATE, TALK, resampled
from bench.service import running_service

TALKS = {"en": "talk", "es": "talk_es", "de": "talk_de"}  # in tests/data, with the sentences
VOICES = ("en-us", "en-gb+m3", "en-us+f2", "es", "es-419+f3", "de", "de+m4")  # they begin with their language
PAUSES_S = (0.15, 0.3, 0.6, 1.2)

# Of speak_lib.h.
_RETRIEVAL, _POS_CHARACTER, _CHARS_UTF8, _RATE, _PITCH, _WORD, _END = 1, 1, 1, 1, 3, 1, 0


class _Event(ctypes.Structure):
    _fields_ = (
        ("type", ctypes.c_int),
        ("unique_identifier", ctypes.c_uint),
        ("text_position", ctypes.c_int),  # from 1
        ("length", ctypes.c_int),
        ("audio_position", ctypes.c_int),
        ("sample", ctypes.c_int),
        ("user_data", ctypes.c_void_p),
        ("id", ctypes.c_char * 8),
    )


class Synthesizer:
    """espeak-ng, which says when each word begins."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL("libespeak-ng.so.1")
        self._rate = self._library.espeak_Initialize(_RETRIEVAL, 0, None, 0)
        self._parts: list[np.ndarray] = []
        self._begun: dict[int, int] = {}  # place in the text, and sample
        samples, events = ctypes.POINTER(ctypes.c_short), ctypes.POINTER(_Event)
        # Kept: the library does not hold it.
        self._callback = ctypes.CFUNCTYPE(ctypes.c_int, samples, ctypes.c_int, events)(self._take)
        self._library.espeak_SetSynthCallback(self._callback)

    def _take(
        self, samples: "ctypes._Pointer[ctypes.c_short]", count: int, events: "ctypes._Pointer[_Event]"
    ) -> int:
        if count > 0:
            self._parts.append(np.ctypeslib.as_array(samples, (count,)).copy())
        at = 0
        while events[at].type != _END:
            if events[at].type == _WORD:
                self._begun[events[at].text_position - 1] = events[at].sample
            at += 1
        return 0

    def say(self, text: str, voice: str, rate: int, pitch: int) -> tuple[np.ndarray, list[TimedWord]]:
        """The sound at 16 kHz, and the words that the voice says apart from others."""
        self._parts, self._begun = [], {}
        self._library.espeak_SetVoiceByName(voice.encode())
        self._library.espeak_SetParameter(_RATE, rate, 0)
        self._library.espeak_SetParameter(_PITCH, pitch, 0)
        said = text.encode()
        self._library.espeak_Synth(said, len(said) + 1, 0, _POS_CHARACTER, 0, _CHARS_UTF8, None, None)
        self._library.espeak_Synchronize()
        sound = resampled(np.concatenate(self._parts), self._rate, RATE)
        words = []
        position = 0
        for word in text.split():
            at = text.index(word, position)
            position = at + len(word)
            if at in self._begun:
                start = self._begun[at] / self._rate
                words += [TimedWord(part, start, start) for part in normalise(word).split()[:1]]
        return sound, words


def talk_of(synthesizer: Synthesizer, voice: str) -> tuple[np.ndarray, list[TimedWord]]:
    """A talk in a voice (int16, 16 kHz), and its words."""
    chance = random.Random(voice)
    cues = json.loads(TALK.with_name(f"{TALKS[voice[:2]]}.json").read_text())["cues"]
    rate, pitch = chance.randint(140, 190), chance.randint(30, 70)
    parts: list[np.ndarray] = []
    words: list[TimedWord] = []
    for cue in chance.sample(cues, len(cues)):
        offset_s = sum(map(len, parts)) / RATE
        sound, said = synthesizer.say(cue["text"], voice, rate, pitch)
        words += [TimedWord(word.text, word.start + offset_s, word.end + offset_s) for word in said]
        parts += [sound, np.zeros(round(chance.choice(PAUSES_S) * RATE), np.int16)]
    return np.concatenate(parts), words


def main() -> int:
    """Measure all voices and print the table. Returns the exit code."""
    parser = parser_of(__doc__)
    parser.add_argument("--model", default=str(DEMO_PATH), help="folder of the model")
    parser.add_argument("--url", help="of a running service; otherwise a new one")
    parser.add_argument("--language", default="", help="only voices of this one")
    arguments = parser.parse_args()
    voices = [voice for voice in VOICES if voice.startswith(arguments.language)]
    synthesizer = Synthesizer()
    rows, figures = [], {}
    with running_service(arguments.url, WHISPER_MODEL=arguments.model) as client:
        for voice in voices[: 1 if arguments.quick else None]:
            pcm, spoken = talk_of(synthesizer, voice)
            found = upload(client, Sound(voice, pcm, voice[:2], None)).words
            pairs = matches([word.text for word in found], [word.text for word in spoken])
            distances = np.array([abs(found[i].start - spoken[j].start) for i, j in pairs])
            figures[voice] = distances.tolist()
            spread = [f"{value:.2f}" for value in np.percentile(distances, [50, 90])]
            rows.append(
                [voice, len(spoken), len(distances), *spread, f"{100 * np.mean(distances > LATE_S):.0f}"]
            )
    columns = ["voice", "words", "found", "starts off by (s): median", "90 %", f"over {LATE_S} s (%)"]
    print(*markdown(columns, rows), sep="\n")
    if arguments.json is not None:
        write_json(arguments.json, figures)
    return 0


if __name__ == "__main__":
    sys.exit(main())
