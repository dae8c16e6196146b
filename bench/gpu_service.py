"""What `bench/gpu_session.py` measures of a worker and of the whole service. Needs the service's packages."""

import asyncio
import statistics
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace
from functools import cached_property
from threading import Event

import httpx
import jiwer
import numpy as np

from bench.command import silence_logs
from bench.gpu import measure
from bench.gpu_decoding import TURBO, Decoding, Found, Session, decode
from bench.live_streams import Way, excerpts, load, upload
from bench.live_streams import measure as play
from bench.quality import normalise
from bench.recordings import TALK, Recording, talk_for
from bench.service import running_service, server_process
from bench.sized_model import DEMO_PATH, make_model
from bench.throughput import request_srt, words_of
from workers.messages import DecodingOptions
from workers.whisper.ctranslate2 import CTranslate2Backend

_NEVER = -60_000.0  # a bias that excludes a token, in float16


class Workers:
    """The service's worker alone."""

    def __init__(self, session: Session, _: ExitStack, backend: str) -> None:
        self._session, self._backend = session, backend

    def parts(self) -> dict[str, Callable[[], Found]]:
        parts = {"batches": self._batches}
        return parts | ({"bias": self._bias} if self._backend == "ctranslate2" else {})

    def _batches(self) -> Found:
        """Batches as the service decodes them, with the texts of words."""
        session = self._session
        silence_logs()
        ways = [DecodingOptions("model", language="en", word_timestamps=True)]
        visible = "0" if session.device == "cuda" else ""
        runs = asyncio.run(
            measure(
                *(session.models / TURBO, session.device, visible, session.compute_type, 1),
                *([session.batch], session.repeat),
                ways=ways,
                threads=1 if session.small else 8,
                backend=self._backend,
                talk=session.pcm("talk"),
            )
        )
        found: Found = {f"{'stream' if run.ahead else 'batch'} s": run.batch_s for run in runs}
        return found | {"load s": runs[0].start_s, "memory MB": runs[-1].used_mb}

    def _bias(self) -> Found:
        """CTranslate2 on one thread, whose output projection has a bias against the suppressed tokens.

        So its list of excluded tokens stays short. The no-speech token is not among them: its probability is
        asked for.
        """
        session, decoding = self._session, Decoding(self._session, TURBO)
        shape, tokens = session.shape(TURBO), decoding.tokens
        bias = np.zeros(shape.vocabulary, np.float16)
        bias[[token for token in tokens.suppressed if token != tokens.no_speech]] = _NEVER
        folder = session.models / "bias"
        make_model(shape, folder, sound=session.pcm("sample"), more={"decoder/projection/bias": bias})
        options = replace(session.options("bias", session.batch), cpu_threads=1)
        found: Found = {}
        for name, suppressed in (("without", tokens.suppressed), ("bias", ())):
            backend = CTranslate2Backend(
                options, session.compute_type, replace(tokens, suppressed=suppressed)
            )
            times = []
            for _ in range(1 + min(2, session.repeat)):
                began = time.perf_counter()
                results = decode(backend, decoding.batch, decoding.start, context_s=decoding.context_s)
                times.append(time.perf_counter() - began)
            found |= {f"{name}: batch s": statistics.median(times[1:])}
        return found | decoding.compared(results, session.timed)


class Service:
    """A service of one worker, over HTTP."""

    def __init__(self, session: Session, stack: ExitStack, backend: str) -> None:
        self._session, self._stack, self._backend = session, stack, backend

    def parts(self) -> dict[str, Callable[[], Found]]:
        parts = {"hour": self._hour}
        if self._backend == "torch":
            parts |= {"eight": self._eight, "streams": self._streams, "streams beside files": self._both}
        return parts

    @cached_property
    def _client(self) -> httpx.Client:
        session = self._session
        environment = {
            "WHISPER_MODEL": str(session.models / TURBO),
            "WHISPER_DEVICE": session.device,
            "WHISPER_BACKEND": self._backend,
            "WHISPER_BATCH_SIZE": str(session.batch),
            "WHISPER_MEDIA_WORKERS": "1" if session.small else "8",
            "WHISPER_MAX_STREAMS": "1000",
        }
        if session.device == "cpu":
            environment |= {"WHISPER_CPU_WORKERS": "1", "WHISPER_CPU_THREADS": "1"}
        return self._stack.enter_context(running_service(**environment))

    @cached_property
    def _mp3(self) -> Recording:
        return self._recording(".mp3")

    def _recording(self, suffix: str) -> Recording:
        return talk_for(self._session.models, 60 if self._session.small else 3600, suffix)

    def _hour(self) -> Found:
        """Uploads to SRT: an hour, as MP3 and as WAV."""
        mp3 = self._mp3
        began = time.perf_counter()
        client = self._client
        found: Found = {"start s": time.perf_counter() - began}
        request_srt(client, DEMO_PATH / "sample.flac")  # what a first request sets up is not measured
        # The first one pays for what a GPU sets up for each length of context.
        for kind, recording in {"first mp3": mp3, "mp3": mp3, "wav": self._recording(".wav")}.items():
            began = time.perf_counter()
            text = words_of(request_srt(client, recording.path))
            took = time.perf_counter() - began
            errors = jiwer.wer(normalise(recording.truth), normalise(text))
            found |= {f"{kind} s": took, f"{kind} x real time": recording.seconds / took}
            found[f"{kind} word errors"] = errors
        return found

    def _eight(self) -> Found:
        """Eight hours at once."""
        client, recording = self._client, self._mp3
        count = 2 if self._session.small else 8
        began = time.perf_counter()
        with ThreadPoolExecutor(count) as clients:
            list(clients.map(request_srt, [client] * count, [recording.path] * count))
        took = time.perf_counter() - began
        return {"all s": took, "x real time": count * recording.seconds / took}

    def _batches(self) -> tuple[float, ...]:
        """So far: batches, their windows, and the time that they took (s)."""
        lines = self._client.get("/metrics").text.splitlines()
        found = dict(line.rsplit(" ", 1) for line in lines if line.startswith("whisperfleet_batch_"))
        names = ("clips_count", "clips_sum", "seconds_sum")
        return tuple(float(found[f"whisperfleet_batch_{name}"]) for name in names)

    def _streams(self) -> Found:
        """Live streams at once."""
        client, small = self._client, self._session.small
        parts = excerpts(load(TALK, None), *((2, 10) if small else (10, 30)))
        sounds = [upload(client, part) for part in parts]
        way = Way(100, 2 if small else 100, "server_vad", 0)
        before = self._batches()
        found = asyncio.run(play(str(client.base_url), sounds, way, server_process(client)))
        batches, windows, seconds = np.subtract(self._batches(), before)
        return {
            "batches": int(batches),
            "windows in one": windows / batches,
            "a batch s": seconds / batches,
            "first words s": found["first_s"][0],
            "first words, 95 % s": found["first_s"][1],
            "all words s": found["words_s"][0],
            "all words, 95 % s": found["words_s"][1],
            "final s": found["final_s"][0],
            "word errors %": found["wer_percent"],
            "taken back %": found["taken_back_percent"],
            "health p99 ms": found["health_p99_ms"],
        }

    def _both(self) -> Found:
        """The same while two clients send hours, one after another."""
        client, path = self._client, self._mp3.path
        ended = Event()

        def send() -> int:
            hours = 0
            while not ended.is_set():
                request_srt(client, path)
                hours += 1
            return hours

        with ThreadPoolExecutor(2) as clients:
            sent = [clients.submit(send) for _ in range(2)]
            try:
                found = self._streams()
            finally:
                ended.set()
        return found | {"hours meanwhile": sum(hours.result() for hours in sent)}
