"""The errors for files that cannot be transcribed, with messages for their senders."""

import codecs
import json
import tomllib
from collections.abc import Sequence
from pathlib import Path

from workers.messages import MAX_SEPARATE_CHANNELS, RecordingRefused, SoundTrack

HEAD_BYTES = 4096  # of a file, enough to recognise its type
MAX_NAMED_TRACKS = 20  # in one message
MAX_TITLE_CHARS = 60  # of a track

# First bytes of files, and the names of their types.
_FILE_TYPES = tomllib.loads(Path(__file__).with_name("file_types.toml").read_text("utf-8"))

_SEND_INSTEAD = "Send an audio or video file, such as MP3, M4A, WAV, FLAC, OGG, MP4, MKV or WebM."


def empty_file() -> RecordingRefused:
    return RecordingRefused(
        "empty_file", "The file is empty (0 bytes). The upload may have been interrupted: send it again."
    )


def unreadable(source: Path) -> RecordingRefused:
    """For a file in which FFmpeg recognises no audio or video."""
    with source.open("rb") as file:
        head = file.read(HEAD_BYTES)
    for offset, magic, name in _FILE_TYPES["recordings"]:
        if head.startswith(magic.encode("latin-1"), offset):
            return _broken(f"The file looks like {name}, but it is broken or incomplete and cannot be read.")
    return RecordingRefused("not_audio", f"The file is {_type_name(head)}. {_SEND_INSTEAD}")


def nothing_decoded() -> RecordingRefused:
    return _broken("The file is damaged or not a recording: no sound could be decoded from it.")


def no_sound_track(has_video: bool) -> RecordingRefused:
    what = "The video has no sound track" if has_video else "The file has no sound in it"
    return RecordingRefused("no_audio_track", f"{what}, so there is nothing to transcribe. {_SEND_INSTEAD}")


def too_short(seconds: float) -> RecordingRefused:
    return RecordingRefused(
        "audio_too_short",
        f"The recording holds {seconds:.2f} s of sound; at least 0.1 s is needed. Send a longer recording.",
    )


def no_such_track(wanted: int | tuple[str, ...], tracks: Sequence[SoundTrack]) -> RecordingRefused:
    """For a sound track that a file does not have. Names those that it has."""
    what = f"no sound track {wanted}" if isinstance(wanted, int) else f"no sound track in {wanted[0]!r}"
    there = ", ".join(_track_name(track) for track in tracks[:MAX_NAMED_TRACKS])
    more = f" and {len(tracks) - MAX_NAMED_TRACKS} more" if len(tracks) > MAX_NAMED_TRACKS else ""
    return RecordingRefused(
        "no_such_track", f"The file has {what}. It has {there}{more}: name one of these, or none."
    )


def outside(start_s: float, recording_s: float) -> RecordingRefused:
    """For a part that begins where the recording has ended, or just before."""
    return RecordingRefused(
        "start_after_end",
        f"The recording ends at {recording_s:.2f} s, so there is nothing to transcribe from `start` "
        f"({start_s:.2f} s) on. Choose an earlier `start`.",
    )


def too_many_channels(channels: int) -> RecordingRefused:
    return RecordingRefused(
        "too_many_channels",
        f"The sound has {channels} channels; at most {MAX_SEPARATE_CHANNELS} can be transcribed separately. "
        "Leave out `channels=separate`, or send the channels in several files.",
    )


def encrypted() -> RecordingRefused:
    return RecordingRefused(
        "encrypted", "The recording is copy-protected (encrypted). Send a file without copy protection."
    )


def unsupported_codec() -> RecordingRefused:
    return RecordingRefused(
        "unsupported_codec",
        "The sound is encoded in a way that cannot be decoded here. Convert it to MP3, FLAC or WAV.",
    )


def too_demanding() -> RecordingRefused:
    return RecordingRefused(
        "too_demanding",
        "Decoding the file takes more memory than a recording should need; it may be damaged. "
        "Convert it to MP3, FLAC or WAV.",
    )


def _track_name(track: SoundTrack) -> str:
    """Such as `1 (ger, "Director's comment")`."""
    title = json.dumps(track.title[:MAX_TITLE_CHARS], ensure_ascii=False) if track.title else None
    details = ", ".join(detail for detail in (track.language, title) if detail)
    return f"{track.index} ({details})" if details else str(track.index)


def _broken(what: str) -> RecordingRefused:
    return RecordingRefused("broken_file", f"{what} Check that it plays, and send it again or convert it.")


def _type_name(head: bytes) -> str:
    for magic, name in _FILE_TYPES["others"]:
        if head.startswith(magic.encode("latin-1")):
            return str(name)
    return "text" if _is_text(head) else "neither audio nor video that could be recognised"


def _is_text(head: bytes) -> bool:
    if b"\x00" in head:
        return False
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # the last character may be cut in two
    except UnicodeDecodeError:
        return False
    return True
