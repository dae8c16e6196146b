"""Decodes a recording of any format to int16 chunk by chunk, with a player's timing.

The parent imports this module, so it imports PyAV in functions only.
"""

from collections.abc import Collection, Generator, Iterator, Sequence
from contextlib import ExitStack, closing, contextmanager
from itertools import chain, islice
from pathlib import Path
from typing import Any

from workers.media import refusal
from workers.media.clock import MAX_DRIFT_S, Clock, TimedFrame, confirmed, length_s
from workers.media.findings import Findings
from workers.media.mixer import SPEECH, Mixer, PcmFormat
from workers.media.packets import UNTIMED, Undecodable, has_one_rate, without_copies
from workers.media.sources import Source, next_file, readers, skipped_bytes
from workers.messages import (
    BYTES_PER_SAMPLE,
    MAX_SEPARATE_CHANNELS,
    SAMPLE_RATE,
    RecordingRefused,
    SoundTrack,
    TrackChoice,
)

# The demuxers that FFmpeg may use. Missing are those that open other files or devices (hls, dash, concat,
# sdp, image2, lavfi, ...), pictures, subtitles, and formats that FFmpeg recognises by their file name only.
DEMUXERS = (
    "3gp,aac,ac3,act,adx,aiff,amr,amrnb,amrwb,ape,asf,ast,au,avi,caf,dhav,dsf,dss,dts,dtshd,dv,eac3,flac,"
    "flv,gxf,ircam,loas,lxf,matroska,mlp,mmf,mov,mp3,mpc,mpc8,mpeg,mpegts,mxf,nistsphere,nut,ogg,oma,pvf,qcp,"
    "rm,smjpeg,sox,swf,tak,truehd,tta,voc,w64,wav,wtv,wv,xwma"
)
# Demuxers that read a recording's length from its header; others estimate it or use the end of the file.
EXACT_DURATION = frozenset({"flac", "matroska,webm", "mov,mp4,m4a,3gp,3g2,mj2"})
# Demuxers that know it at least roughly, from a header or from the end of the file. The others, such as that
# for MP3, may estimate it from one bit rate.
KNOWN_DURATION = EXACT_DURATION | {"aiff", "caf", "ogg", "tta", "w64", "wav", "wv"}
GUESSED_DURATION = UNTIMED | {"act"}  # demuxers that may guess a length from one bit rate
MIN_BIT_RATE = 1000  # a length for which the bytes of a file would have less is wrong
OVERFLOW = 1 << 31  # units of time: a last sample that is said to last as long had a negative length
LATE_S = 60.0  # the length that an Ogg file declares counts from 0, also if it begins later than this
# Demuxers that seek to the exact packet, of any codec and of PCM. Ogg's does not where streams are chained.
SEEKABLE = frozenset({"aac", "amr", "flac", "mov,mp4,m4a,3gp,3g2,mj2", "mp3"})
SEEKABLE_PCM = frozenset({"aiff", "au", "caf", "w64", "wav"})
SETTLING_S = 1  # that codecs need before their samples, and the resampler before its own, are those of always
CUT_OFF_S = 1.0  # more missing at the end gives a warning
GAP_S = 0.5  # a longer gap gives a warning; encoders send nothing for 0.4 s while nobody speaks

OPEN_OPTIONS = {
    "format_whitelist": DEMUXERS,
    "protocol_whitelist": "none",  # FFmpeg gets an open file and may open no other
    # How far to search for tracks if the file has no table of them; the sound may start late.
    "probesize": str(32 << 20),  # bytes
    "analyzeduration": str(60_000_000),  # microseconds
    "merge_pmt_versions": "1",  # MPEG-TS: a sound that goes on under another number stays one track
}
READ_BYTES = 1 << 18  # per read from disk
CHUNK_SAMPLES = 10 * SAMPLE_RATE  # of silence and of raw PCM
SOUND_RATES = range(8000, 48_001)  # Hz, of sound for people
MAX_READ_FAILURES = 100  # after them, the rest of the file is skipped
MAX_TAG_CHARS = 200  # of the language or the title of a track

# A header with other values is damaged; FFmpeg's mixer also supports no more channels.
RATES = range(1000, 1_000_001)  # Hz
MAX_CHANNELS = 64

# FFmpeg's own decoders fail on each frame of comfort noise, which stands for the pauses.
BETTER_DECODERS = {"amrnb": "libopencore_amrnb", "amrwb": "libopencore_amrwb"}

Pcm = Generator[bytes, None, None]  # chunks of s16le; closing it closes the source


def raw_pcm(source: Path, findings: Findings, track: TrackChoice = None) -> Pcm:
    """The content of a file that already is s16le mono 16 kHz. Half a sample at its end is dropped.

    The first chunk is empty, as in `decoded_pcm`. Raises `RecordingRefused` for a `track` other than 0.
    """
    if track is not None:
        _place(track, [SoundTrack(0, None, None, None, 1, True)])
    with source.open("rb") as file:
        findings.declared_s = source.stat().st_size / BYTES_PER_SAMPLE / SAMPLE_RATE
        yield b""
        while chunk := file.read(CHUNK_SAMPLES * BYTES_PER_SAMPLE):
            yield chunk[: len(chunk) // BYTES_PER_SAMPLE * BYTES_PER_SAMPLE]


def decoded_pcm(
    source: Path,
    findings: Findings,
    output: PcmFormat | None = SPEECH,
    track: TrackChoice = None,
    separate: bool = False,
    start_s: float = 0.0,
) -> Pcm:
    """A sound track of a file as s16le, in chunks; without `output`, in a format like its own.

    `separate`: with all channels that the sound begins with, instead of those of `output`. What precedes
    `start_s` is skipped where the place of what follows is known without it: see `findings.skipped_s`.

    The first chunk is empty: then the file is open, `findings.declared_s` is known, and nothing is decoded.
    Sample 0 is the start of the file, which may be earlier than the start of its sound. Gaps between
    timestamps become silence. Memory does not grow with length. Damaged parts are skipped. Raises
    `RecordingRefused` if the file cannot be read, does not have the track, or has too many channels.
    """
    with _translate_errors(), ExitStack() as files:
        container, stream = _open_track(source, track, findings, files)
        findings.declared_channels = stream.codec_context.channels if separate else 1
        late = None
        if (skipped_s := int(start_s) - SETTLING_S) > 0:
            late = _frames_around(skipped_s, container, stream, findings)
            if late is None:
                files.close()
                container, stream = _open_track(source, track, findings, files)
            else:
                findings.skipped_s = skipped_s
            findings.start_anew()
        yield b""
        origin = None if container.start_time is None else container.start_time / 1_000_000
        frames = late or _all_frames(source, container, stream, track, findings)
        first = list(islice(frames, 1))
        output = output or (_own_format(first[0][0]) if first else SPEECH)
        if separate and first:
            channels = first[0][0].layout.nb_channels
            if channels > MAX_SEPARATE_CHANNELS:
                raise refusal.too_many_channels(channels)
            output = PcmFormat(output.rate, channels, separate=True)
        findings.pcm_format = output
        clock, cut = Clock(origin, file_length_s(container), output.rate), 0
        if late is not None:
            [(frame, start)] = first
            assert start is not None
            clock.position = start - (origin or 0.0)
            cut = round((findings.skipped_s - clock.position) * frame.sample_rate)
        frames = chain(first, frames)
        if container.format.name in UNTIMED:
            frames = ((frame, None) for frame, _ in frames)
        mixer: Mixer | None = None
        for frame, start in confirmed(frames, clock, findings):
            jump = clock.place(start, length_s(frame))
            findings.position_s = clock.position
            if mixer is None or jump or not mixer.accepts(frame):
                begin_s = clock.position - length_s(frame)
                if mixer is not None:
                    yield mixer.finish()
                    if jump >= GAP_S * output.rate:
                        findings.note("gap", begin_s - jump / output.rate, begin_s)
                if jump < 0 and clock.drift_s > MAX_DRIFT_S:
                    findings.note("drift", clock.drift_from, clock.position)
                yield from _silence(jump, output.frame_bytes)
                mixer, cut = Mixer(frame, max(0, -jump), output, cut, begin_s), 0
            yield mixer.mix(frame)
        if mixer is not None:
            yield mixer.finish()
        declared_s = _declared_s(container, stream, EXACT_DURATION)
        if clock.position < declared_s - CUT_OFF_S:
            findings.note("cut_off", clock.position, declared_s)


def _open_track(
    source: Path, track: TrackChoice, findings: Findings, files: ExitStack, place: int = 0
) -> tuple[Any, Any]:
    """A file, or the one that was joined to it at the byte `place`, and its stream that is wanted.

    `files` closes it, which is read in the first way in which a sound track of it can be decoded.
    """
    import av

    av.logging.set_level(None)  # a damaged file could log a message for each packet
    container, coding = None, None
    for way in [Source(source, place)] if place else readers(source):
        try:
            opened = av.open(
                files.enter_context(closing(way)),
                container_options=OPEN_OPTIONS,
                metadata_errors="replace",
                buffer_size=READ_BYTES,
            )
        except av.MemoryError:
            raise
        except (av.FFmpegError, ValueError):
            continue
        files.enter_context(opened)
        can_decode = any(each.codec_context for each in opened.streams.audio)
        if container is None or can_decode:
            container, coding = opened, way.coding
        if can_decode:
            break
    if container is None:
        raise refusal.unreadable(source)
    findings.tracks = tuple(
        _described(index, each, coding) for index, each in enumerate(container.streams.audio)
    )
    stream = _sound_track(container, track, findings.tracks)
    findings.declared_s = _declared_s(container, stream, KNOWN_DURATION)
    return container, stream


@contextmanager
def _translate_errors() -> Iterator[None]:
    """Translate the errors of FFmpeg to `RecordingRefused`."""
    import av

    try:
        yield
    except MemoryError:
        raise refusal.too_demanding() from None
    except av.FFmpegError:
        raise refusal.nothing_decoded() from None


def _sound_track(container: Any, wanted: TrackChoice, tracks: Sequence[SoundTrack]) -> Any:
    """The audio stream that is wanted. Switches the others off."""
    from av.stream import Discard

    if not tracks:
        raise refusal.no_sound_track(has_video=bool(container.streams.video))
    chosen = _preferred(container) if wanted is None else container.streams.audio[_place(wanted, tracks)]
    if chosen.codec_context is None:
        raise refusal.unsupported_codec()
    chosen.codec_context.thread_count = 1
    for stream in container.streams:
        if stream.index != chosen.index:
            stream.discard = Discard.all
    return chosen


def _preferred(container: Any) -> Any:
    """The audio stream that a player chooses: the first default one, or else FFmpeg's best one.

    Those that nothing decodes do not count, nor as default ones those for people who hear or see badly.
    """
    from av.stream import Disposition

    able = [each for each in container.streams.audio if each.codec_context is not None]
    special = Disposition.hearing_impaired | Disposition.visual_impaired
    for stream in able:
        if stream.disposition & (Disposition.default | special) == Disposition.default:
            return stream
    # FFmpeg finds none best while the rate and channels of a track are unknown: use the first one then.
    best = container.streams.best("audio")
    return next((each for each in able if each == best), (able or container.streams.audio)[0])


def _place(wanted: int | tuple[str, ...], tracks: Sequence[SoundTrack]) -> int:
    """The place of a track. Of several in one language, the default one or else the first."""
    if isinstance(wanted, int):
        found = [track for track in tracks if track.index == wanted]
    else:
        languages = [(track, (track.language or "").lower().split("-")[0]) for track in tracks]
        found = [track for track, language in languages if language in wanted]
        varieties = {name.partition("-")[2] for name in wanted[1:]} - {""}
        found = found or [track for track, language in languages if language in varieties]
        found = [track for track in found if track.codec is not None] or found
    if not found:
        raise refusal.no_such_track(wanted, tracks)
    return next((track for track in found if track.default), found[0]).index


def _described(index: int, stream: Any, coding: str | None) -> SoundTrack:
    from av.stream import Disposition

    context = stream.codec_context
    return SoundTrack(
        index=index,
        language=_text(stream.metadata.get("language")),
        title=_text(stream.metadata.get("title")),
        codec=coding or (None if context is None else context.name),
        channels=None if context is None else context.channels or None,
        default=bool(stream.disposition & Disposition.default),
    )


def _text(value: str | None) -> str | None:
    """A tag of a file on one line, of bounded length; None if it says nothing."""
    text = " ".join((value or "").split())[:MAX_TAG_CHARS]
    return None if text.lower() in ("", "und") else text


def _all_frames(
    source: Path, container: Any, stream: Any, track: TrackChoice, findings: Findings
) -> Iterator[TimedFrame]:
    """Each frame that can be decoded, also of files that were joined to the first one."""
    form = container.format.name
    place = skipped_bytes(source) + (yield from _frames(container, stream, findings))
    while place := next_file(source, form, place):
        with ExitStack() as files:
            try:
                container, stream = _open_track(source, track, Findings(), files, place)
            except RecordingRefused:
                findings.damage()
                place += 1
            else:
                place += yield from _frames(container, stream, findings)


def _frames(container: Any, stream: Any, findings: Findings) -> Generator[TimedFrame, None, int]:
    """Each frame that can be decoded, and silence for packets that cannot, as `Undecodable` has it.

    A time that stands still is none. Returns the place in the file of the last packet.
    """
    import av

    decoder, unit = stream.codec_context, float(stream.time_base)
    if decoder.name in BETTER_DECODERS and decoder.channels <= 1:
        decoder = av.CodecContext.create(BETTER_DECODERS[decoder.name], "r")
    place, last_pts, goes_back = 1, None, False
    undecodable = Undecodable(container, stream, findings)
    may_be_encrypted, is_amr = container.format.name not in UNTIMED, container.format.name == "amr"
    packets = _packets(container, stream, findings)
    for packet in without_copies(packets, container, stream, findings):
        if place > 1 and decoder.name == "flac" and packet.has_sidedata("strings_metadata"):
            break  # joined files: FFmpeg would not see that the next one has another rate
        if place > 1 and is_amr and bytes(packet).startswith(b"#!AMR"):
            break  # joined files: FFmpeg takes the beginning of the next one for a frame
        place = max(place, packet.pos or 0)
        if may_be_encrypted and packet.has_sidedata("encryption_info"):
            raise refusal.encrypted()
        goes_back = (
            packet.is_discard and last_pts is not None and (goes_back or (packet.pts or 0) <= last_pts)
        )
        if goes_back:  # FFmpeg would drop the first fragment of MP4 after the clock starts anew
            kept = av.Packet(bytes(packet))
            kept.pts, kept.time_base = packet.pts, packet.time_base
            packet = kept
        try:
            frames = decoder.decode(packet)
        except av.EOFError:  # flushed already
            break
        except av.FFmpegError:
            frames = undecodable.replace(packet)
        for frame in frames:
            if frame.sample_rate not in RATES or frame.layout.nb_channels > MAX_CHANNELS:
                findings.damage()
            elif frame.samples:
                if frame.is_corrupt and not packet.is_corrupt:  # not only because one before it is missing
                    findings.damage(length_s(frame))
                is_new = frame.pts not in (None, last_pts)
                last_pts = frame.pts if is_new else last_pts
                yield frame, frame.pts * unit if is_new else None
    return place


def _packets(container: Any, stream: Any, findings: Findings) -> Iterator[Any]:
    """Each packet of a stream, then an empty one that flushes the decoder. Skips read failures."""
    import av

    for _ in range(MAX_READ_FAILURES):
        try:
            yield from container.demux(stream)
            return
        except IndexError:  # PyAV's demuxer ends so if a track appeared late
            break
        except av.FFmpegError as error:
            if container.format.name == "ogg" and isinstance(error, (av.ArgumentError, av.PatchWelcomeError)):
                break  # a file of another format was joined to this one
            findings.damage()
    flush = av.Packet()
    flush.stream = stream
    yield flush


def _frames_around(
    second: int, container: Any, stream: Any, findings: Findings
) -> Iterator[TimedFrame] | None:
    """The frames from the one that is played when this second of the file begins.

    None if only decoding what precedes it tells which one that is.
    """
    import av

    codec, unit = stream.codec_context, stream.time_base
    is_exact = container.format.name in (SEEKABLE | SEEKABLE_PCM if codec.name[:4] == "pcm_" else SEEKABLE)
    if not is_exact or not codec.sample_rate or 1 / unit % codec.sample_rate:
        return None
    at_s = (container.start_time or 0) / 1_000_000 + second
    try:
        if container.format.name == "aac" and not has_one_rate(container, stream, at_s):
            return None
        container.seek(round((at_s - SETTLING_S) / unit), stream=stream)
        frames = _frames(container, stream, findings)
        for frame, start in frames:
            if start is None or start > at_s:
                return None
            if start + length_s(frame) > at_s:
                return chain([(frame, start)], frames)
    except av.FFmpegError:
        pass
    return None


def _own_format(frame: Any) -> PcmFormat:
    """The format for people who listen: a frame's own rate within `SOUND_RATES`, and one or two channels."""
    rate = min(max(frame.sample_rate, SOUND_RATES.start), SOUND_RATES.stop - 1)
    return PcmFormat(rate, 2 if frame.layout.nb_channels == 2 else 1)


def _silence(samples: int, frame_bytes: int) -> Iterator[bytes]:
    for start in range(0, samples, CHUNK_SAMPLES):
        yield bytes(min(CHUNK_SAMPLES, samples - start) * frame_bytes)


def file_length_s(container: Any) -> float | None:
    """The length of a file; None if that is not known, a guess, or derived from times that may start anew."""
    from av.format import Flags

    is_guess = container.format.name in GUESSED_DURATION or container.format.flags & Flags.ts_discont.value
    return None if is_guess or container.duration is None else container.duration / 1_000_000


def _declared_s(container: Any, stream: Any, demuxers: Collection[str]) -> float:
    """The length of the sound as one of `demuxers` gives it; 0 if it is not known, or cannot be."""
    if container.format.name not in demuxers:
        return 0.0
    start_s = (container.start_time or 0) / 1_000_000
    if stream.duration is not None:
        declared_s = float(stream.duration) * float(stream.time_base)
        index = stream.index_entries
        is_overflow = len(index) > 0 and stream.duration - index[-1].timestamp >= OVERFLOW
        if is_overflow or (container.format.name == "ogg" and start_s > LATE_S):
            return 0.0
    elif len(container.streams) > 1 or container.duration is None:
        return 0.0  # another track may be longer
    else:
        declared_s = container.duration / 1_000_000 - start_s
    return declared_s if declared_s <= container.size * 8 / MIN_BIT_RATE else 0.0
