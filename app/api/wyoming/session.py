"""One client of Wyoming: it asks what there is, and has its speech transcribed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from typing import Any

import structlog

from app.api.operation.system import VERSION
from app.api.wyoming.framing import MAX_LINE_BYTES, EventReader, encode
from app.common.errors import STOPPING, InvalidInput, StreamRefused, WhisperfleetError
from app.common.languages import language_code, language_tag
from app.common.options import MAX_WORDS_CHARS
from app.common.owners import Client
from app.engines.catalogue import ModelCatalogue
from app.intake.limits import Limiter
from app.live.events import Agreed, Completed, Failed, LiveEvent, StreamOptions
from app.live.stream import LiveStream
from workers.messages import Encoding

IDLE_S = 60.0  # a client that neither asks nor speaks for so long is disconnected
LINGER_S = 10.0  # a client that still sends gets so long to read an error
GONE_S = 60.0  # a client that has gone, or closed its side, waits so long for its text, at least
CLOSE_S = 1.0  # a client may take so long to read the last events
LAST_S = 0.5  # speech may end so long after the service begins to stop: it may have been sent all at once
MAX_UNREAD_BYTES = 1 << 16  # a client that leaves more unread is disconnected
OWNER = Client()  # of all streams: the protocol knows no keys

_PROGRAM = "whisperfleet"
# In Hz. The filter for a rate that has little in common with 16 kHz would be large.
RATES = range(4_000, 96_001, 25)
MAX_WIDTH, MAX_CHANNELS = 4, 2

log = structlog.get_logger("whisperfleet.api")


OpenStream = Callable[[str, StreamOptions], Awaitable[LiveStream]]  # see `LiveService.open`


@dataclass(frozen=True, slots=True)
class Wish:
    """What a client wants of its next speech."""

    model: str = ""  # the default one
    language: str | None = None
    hotwords: str | None = None


class Utterance:
    """The text of one speech, as it grows. `send` takes an event and its data."""

    def __init__(self, stream: LiveStream, encoding: Encoding, send: Callable[..., None]) -> None:
        self._stream = stream
        self.encoding = encoding
        self._send = send
        self._completed: list[Completed] = []
        self._error: WhisperfleetError | None = None
        stream.on_event = self._take
        send("transcript-start")

    async def append(self, audio: bytes) -> None:
        """Add audio: whole samples."""
        await self._stream.append(audio, self.encoding)
        await self._stream.until_ready()

    async def finish(self) -> None:
        """Send the text, once it is complete. Raises the error of a part that has none."""
        await self._stream.finish()
        if (error := self._error or self._stream.fault) is not None:
            raise error
        text = " ".join(item.text.strip() for item in self._completed).strip()
        language = {"language": language_tag(self._completed[0].language)} if self._completed else {}
        self._send("transcript", text=text, **language)
        self._send("transcript-stop")

    async def close(self) -> None:
        """End the stream."""
        await self._stream.close()

    def _take(self, event: LiveEvent) -> None:
        match event:
            case Agreed(text=text):
                self._send("transcript-chunk", text=text)
            case Completed():
                self._completed.append(event)
            case Failed(error=error):
                self._error = error


@dataclass(slots=True)
class WyomingSession:
    """The connection of one client, until it ends."""

    _reader: asyncio.StreamReader
    _writer: asyncio.StreamWriter
    _open_stream: OpenStream
    _catalogue: ModelCatalogue
    _places: Limiter  # of streams
    _events: EventReader
    _wish: Wish = Wish()
    _utterance: Utterance | None = None
    _place: ExitStack = field(default_factory=ExitStack)
    _idle_at: float = 0.0
    _waiting: asyncio.Timeout = field(default_factory=lambda: asyncio.timeout(None))  # for the next event
    _is_stopping: bool = False

    async def run(self) -> None:
        """Answer the events of the client. Closes the connection at the end."""
        try:
            await self._answer_events()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass  # the client has gone
        except WhisperfleetError as error:
            await self._end_utterance()
            await self._refuse(error)
        except asyncio.CancelledError:
            self._send("error", text=STOPPING, code="service_stopping")
            raise
        finally:
            await self._end_utterance()
            await self._close()

    def stop(self) -> None:
        """The service stops: answer what is spoken so far, then say so. A cancelled `run` says so at once."""
        self._is_stopping = True
        self._idle_at = asyncio.get_running_loop().time() + (LAST_S if self._utterance else 0)
        with suppress(RuntimeError):  # it does not wait now
            self._waiting.reschedule(self._idle_at)

    async def _answer_events(self) -> None:
        while True:
            if self._utterance is None:
                self._stay()
            try:
                async with asyncio.timeout_at(self._idle_at) as self._waiting:
                    event = await self._events.next()
            except TimeoutError:
                if self._is_stopping:
                    if self._utterance is not None:
                        await self._finish()
                    raise StreamRefused(STOPPING, code="service_stopping") from None
                raise InvalidInput(f"The connection ends: nothing came for {IDLE_S:g} s.") from None
            if event is None:
                return
            match event.type:
                case "ping":
                    self._send("pong", text=_text(event.data, "text"))
                case "describe":
                    self._send("info", asr=programs(self._catalogue))
                case "select-program":
                    self._wish = Wish(self._model_of(event.data))
                case "transcribe":
                    self._wish = self._wish_of(event.data)
                case "audio-start":
                    await self._begin(event.data)
                case "audio-chunk":
                    await self._append(event.data, event.payload_bytes)
                case "audio-stop":
                    await self._finish()
            if self._writer.transport.is_closing():
                return
            await asyncio.sleep(0)  # many small events arrive at once: others have a turn between them

    def _stay(self) -> None:
        if not self._is_stopping:
            self._idle_at = asyncio.get_running_loop().time() + IDLE_S

    def _model_of(self, data: Mapping[str, Any]) -> str:
        name, default = _text(data, "name") or "", self._catalogue.default
        return next((model for model in self._catalogue.states() if name == program_name(model, default)), "")

    def _wish_of(self, data: Mapping[str, Any]) -> Wish:
        """Raises UnknownModel or InvalidInput for a model or a language that is not here."""
        model = self._catalogue.resolve(_text(data, "name") or self._wish.model)
        spoken = _text(data, "language")
        try:
            language = None if spoken in ("", "auto") else language_code(spoken)
        except ValueError as error:
            raise InvalidInput(str(error), param="language") from None
        self._catalogue.check(model, "transcribe", language)
        terms = [*_texts(data, "transcript_names"), *_texts(data, "transcript_terms")]
        return Wish(model, language, ", ".join(terms)[:MAX_WORDS_CHARS] or None)

    async def _begin(self, data: Mapping[str, Any]) -> Utterance:
        """Open a stream. Raises InvalidInput for a format that is not taken, and as `OpenStream` does."""
        await self._end_utterance()
        encoding = _encoding(data)
        self._place.enter_context(self._places.hold(OWNER))
        wish = self._wish
        options = StreamOptions(wish.language, hotwords=wish.hotwords, turns=None)
        stream = await self._open_stream(wish.model or self._catalogue.default, options)
        self._utterance = Utterance(stream, encoding, self._send)
        self._stay()
        return self._utterance

    async def _append(self, data: Mapping[str, Any], size: int) -> None:
        utterance = self._utterance or await self._begin(data)
        if size % utterance.encoding.bytes_per_sample:
            raise InvalidInput("The payload of an `audio-chunk` ends in the middle of a sample.")
        async for part in self._events.payload():
            await utterance.append(part)
            self._stay()

    async def _finish(self) -> None:
        if self._utterance is None:  # nobody spoke
            for name in ("transcript-start", "transcript", "transcript-stop"):
                self._send(name, **({"text": ""} if name == "transcript" else {}))
            return
        finishing = asyncio.ensure_future(self._utterance.finish())
        try:
            while not (await asyncio.wait([finishing], timeout=GONE_S))[0]:
                if self._reader.at_eof() or self._writer.transport.is_closing():
                    raise ConnectionResetError
            await finishing
        finally:
            finishing.cancel()
        await self._end_utterance()

    async def _end_utterance(self) -> None:
        utterance, self._utterance = self._utterance, None
        try:
            if utterance is not None:
                await utterance.close()
        finally:
            self._place.close()

    def _send(self, event_type: str, /, **data: Any) -> None:
        transport = self._writer.transport
        if transport.get_write_buffer_size() > MAX_UNREAD_BYTES:
            transport.abort()
        else:
            self._writer.write(encode(event_type, data))

    async def _refuse(self, error: WhisperfleetError) -> None:
        """Send an error, and read on for a while: a connection with unread bytes is reset, with the error."""
        self._send("error", text=error.message, code=error.code or type(error).__name__)
        try:
            self._writer.write_eof()
            async with asyncio.timeout(LINGER_S):
                while await self._reader.read(MAX_LINE_BYTES):
                    pass
        except (OSError, TimeoutError):
            pass

    async def _close(self) -> None:
        """Close the connection, at last without what the client has not read."""
        self._writer.close()
        try:
            async with asyncio.timeout(CLOSE_S):
                await self._writer.wait_closed()
        except (OSError, TimeoutError):
            pass
        finally:
            self._writer.transport.abort()


def programs(catalogue: ModelCatalogue) -> list[dict[str, Any]]:
    """A program for each model, as `info` lists them, the default one first: clients take the first one."""
    return [_program(model, catalogue) for model in catalogue.states()]


def program_name(model: str, default: str) -> str:
    return _PROGRAM if model == default else f"{_PROGRAM} {model}"


def _program(model: str, catalogue: ModelCatalogue) -> dict[str, Any]:
    # Home Assistant shows no program that is not installed, and looks once, perhaps while the model loads.
    is_installed = model == catalogue.default or model in catalogue.options
    return {
        "name": program_name(model, catalogue.default),
        "description": "Whisper on every GPU",
        "attribution": {"name": "faster-whisper", "url": "https://github.com/SYSTRAN/faster-whisper"},
        "installed": is_installed,
        "version": VERSION,
        "supports_transcript_streaming": True,
        "requires_external_vad": True,
        "models": [
            {
                "name": model,
                "description": f"Whisper, {model}",
                "attribution": {"name": "OpenAI", "url": "https://github.com/openai/whisper"},
                "installed": is_installed,
                "version": VERSION,
                "languages": [language_tag(code) for code in catalogue.known_languages(model)],
            }
        ],
    }


def _encoding(data: Mapping[str, Any]) -> Encoding:
    match data:
        case {"rate": int(rate), "width": int(width), "channels": int(channels)} if (
            rate in RATES and 0 < width <= MAX_WIDTH and 0 < channels <= MAX_CHANNELS
        ):
            return Encoding(rate, width, channels)
    raise InvalidInput(
        f"This audio is not taken. Send PCM: a rate from {RATES[0]} to {RATES[-1]} that is a multiple of "
        f"{RATES.step}, a width of 1 to {MAX_WIDTH} bytes, and 1 to {MAX_CHANNELS} channels."
    )


def _text(data: Mapping[str, Any], name: str) -> str | None:
    value = data.get(name)
    if value is not None and not isinstance(value, str):
        raise InvalidInput(f"`{name}` is no text.", param=name)
    return value


def _texts(data: Mapping[str, Any], name: str) -> list[str]:
    values = data.get(name) or []
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise InvalidInput(f"`{name}` is no list of texts.", param=name)
    return values
