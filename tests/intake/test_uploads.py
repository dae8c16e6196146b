"""Multipart and raw bodies: complete, cut and broken."""

import asyncio
import contextlib
import errno
import hashlib
import tempfile
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.common.errors import DiskFull, InvalidInput, TooLarge, UnsupportedContentType
from app.intake import file_sink as sinks
from app.intake.disk import MARGIN_BYTES, DiskSpace
from app.intake.uploads import receive_form, receive_raw, remove_leftovers
from app.telemetry.work import Work, working_for
from tests.intake.disks import SmallDisk

pytestmark = pytest.mark.anyio

TYPE = "multipart/form-data; boundary=b0undary"
LIMIT = 10_000_000
# Has parts of boundaries in it, and bytes that are no text.
CONTENT = b"RIFF\r\n--b0undar\r\n--b0undary\x00\r\n\r--\n--b0undary" + bytes(range(256)) * 8 + b"\r"


def part(name, content, extra="", headers=""):
    head = f'--b0undary\r\nContent-Disposition: form-data; name="{name}"{extra}\r\n{headers}\r\n'
    return head.encode() + content + b"\r\n"


def file(content=CONTENT, name="file", filename="talk.wav", headers="Content-Type: audio/wav\r\n"):
    return part(name, content, f'; filename="{filename}"', headers)


def body(*parts):
    return b"".join(parts) + b"--b0undary--\r\n"


BODY = body(
    part("model", b"tiny"), part("g[]", b"word"), file(), part("g[]", "ü".encode()), part("empty", b"")
)


async def stream(chunks):
    for chunk in chunks:
        await asyncio.sleep(0)
        yield chunk


def disk():
    """The space of this machine's disk for temporary files."""
    return DiskSpace(Path(tempfile.gettempdir()))


async def receive(folder, *chunks, content_type=TYPE, limit=LIMIT, **options):
    return await receive_form(stream(chunks), content_type, folder, disk(), limit, **options)


def left(folder):
    return list(folder.iterdir()) if folder.exists() else []


def check_form(form, folder):
    assert form.fields == {"model": ["tiny"], "g[]": ["word", "ü"], "empty": [""]}
    assert form.file.path.parent == folder
    assert form.file.path.read_bytes() == CONTENT
    assert form.file.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert (form.file.size, form.file.filename, form.file.raw_pcm) == (len(CONTENT), "talk.wav", False)


async def test_one_chunk(tmp_path):
    folder = tmp_path / "made" / "uploads"
    form = await receive(folder, BODY)
    check_form(form, folder)
    assert form.file.path.stat().st_mode & 0o777 == 0o600
    form.remove()
    form.remove()
    assert not left(folder)


async def test_single_bytes(tmp_path):
    check_form(await receive(tmp_path, *(BODY[i : i + 1] for i in range(len(BODY)))), tmp_path)


@given(st.lists(st.integers(0, len(BODY)), max_size=12), st.sampled_from([1, 7, 64, 1 << 20]))
async def test_any_split(tmp_path_factory, cuts, buffer_bytes):
    folder = tmp_path_factory.mktemp("uploads")
    edges = [0, *sorted(cuts), len(BODY)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sinks, "BUFFER_BYTES", buffer_bytes)
        form = await receive(folder, *(BODY[start:end] for start, end in pairwise(edges)))
    check_form(form, folder)


@given(st.integers(0, len(BODY) - 1), st.binary(min_size=1, max_size=8))
async def test_broken_bodies_are_refused_or_read_and_leave_nothing(tmp_path_factory, at, garbage):
    folder = tmp_path_factory.mktemp("uploads")
    with contextlib.suppress(InvalidInput):
        form = await receive(folder, BODY[:at], garbage, BODY[at + len(garbage) :])
        form.remove()
    assert not left(folder)


@given(st.integers(0, len(BODY) - 5))
async def test_truncated_bodies_are_refused(tmp_path_factory, end):
    folder = tmp_path_factory.mktemp("uploads")
    with pytest.raises(InvalidInput, match="closing boundary"):
        await receive(folder, BODY[:end])
    assert not left(folder)


async def test_a_file_of_many_buffers(tmp_path):
    content = bytes(range(256)) * 20_000
    form = await receive(tmp_path, body(file(content)))
    assert form.file.sha256 == hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("given_name", "kept"),
    [
        ("../../etc/passwd", "passwd"),
        (r"C:\talks\a.wav", "a.wav"),
        ("x" * 999, "x" * 255),
        ("ü.wav", "ü.wav"),
        ("a\x07b", "ab"),
    ],
)
async def test_filenames_have_no_folders_and_no_control_characters(tmp_path, given_name, kept):
    form = await receive(tmp_path, body(file(filename=given_name)))
    assert form.file.filename == kept
    assert left(tmp_path) == [form.file.path]


async def test_a_file_without_filename(tmp_path):
    form = await receive(tmp_path, body(part("file", CONTENT)))
    assert (form.file.size, form.file.filename) == (len(CONTENT), "")


async def test_text_with_a_filename_or_media_type_is_a_file(tmp_path):
    assert (await receive(tmp_path, body(file(b"some text")))).file.size == 9
    form = await receive(tmp_path, body(part("file", b"text", headers="Content-Type: audio/wav\r\n")))
    assert form.file.size == 4


async def test_other_field_and_pcm(tmp_path):
    form = await receive(tmp_path, body(file(name="audio_file")), file_field="audio_file")
    assert form.file.size == len(CONTENT)


async def test_other_files_are_ignored(tmp_path):
    form = await receive(tmp_path, body(file(name="cover"), part("model", b"tiny")))
    assert (form.fields, form.file, left(tmp_path)) == ({"model": ["tiny"]}, None, [])


async def test_no_parts(tmp_path):
    assert (await receive(tmp_path, body())).fields == {}


@pytest.mark.parametrize(
    ("content", "hint"),
    [
        (body(part("file", b"talk.wav")), "-F file=@PATH"),
        (body(part("file", b"")), "without a file being chosen"),
        (body(file(b"", filename="")), "without a file being chosen"),
        (body(file(b"")), "is empty"),
        (body(file(), file()), "not several"),
        (body(b"--b0undary\r\nContent-Type: text/plain\r\n\r\nx\r\n"), "no name"),
        (body(b"--b0undary\r\nbad header\r\n\r\nx\r\n"), "malformed"),
        (body(part("model", b"\xff")), "UTF-8"),
        (body(*[part("x", b"")] * 300), "parts"),
        (body(part("x", bytes(600_000)), part("y", bytes(600_000))), "exceed"),
        (body(part("x", b"", headers="A: b\r\n" * 100)), "header count"),
        (body(part("x", b"", headers=f"A: {'b' * 9999}\r\n")), "header size"),
        (b"", "closing boundary"),
        (b"hello", "malformed"),
    ],
)
async def test_bad_bodies(tmp_path, content, hint):
    with pytest.raises(InvalidInput, match=hint):
        await receive(tmp_path, content)
    assert not left(tmp_path)


@pytest.mark.parametrize(
    ("content_type", "error"),
    [
        ("", UnsupportedContentType),
        ("application/json", UnsupportedContentType),
        ("multipart/mixed; boundary=b", UnsupportedContentType),
        ("multipart/form-data", InvalidInput),
        ("multipart/form-data; boundary=", InvalidInput),
        (f"multipart/form-data; boundary={'b' * 300}", InvalidInput),
    ],
)
async def test_content_types(tmp_path, content_type, error):
    with pytest.raises(error):
        await receive(tmp_path, BODY, content_type=content_type)


async def test_a_declared_length_over_the_limit_is_refused_unread(tmp_path):
    with pytest.raises(TooLarge, match="10 MB"):
        await receive_form(unread(), TYPE, tmp_path, disk(), LIMIT, content_length=2 * LIMIT)


@pytest.mark.parametrize("name", ["file", "other"])
async def test_a_length_over_the_limit_is_noticed_while_reading(tmp_path, name):
    chunks = [file(b"", name=name)[:-2], *[bytes(500_000)] * 50]
    with pytest.raises(TooLarge):
        await receive(tmp_path, *chunks)
    assert not left(tmp_path)


async def test_before_file_may_refuse_the_file(tmp_path):
    def refuse(fields):
        assert fields == {"model": ["tiny"]}
        raise InvalidInput("no such model")

    with pytest.raises(InvalidInput, match="no such model"):
        await receive(tmp_path, body(part("model", b"tiny"), file()), before_file=refuse)
    assert not left(tmp_path)


async def test_full_disk(tmp_path, monkeypatch):
    def fail(self):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sinks.FileSink, "_close", fail)
    with pytest.raises(DiskFull):
        await receive(tmp_path, body(file(bytes(3 << 20))))
    assert not left(tmp_path)


async def unread():
    pytest.fail("the body was read")
    yield b""


@pytest.mark.parametrize("kind", ["form", "raw"])
async def test_a_declared_length_without_space_is_refused_unread(tmp_path, monkeypatch, kind):
    space = DiskSpace(tmp_path)
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 1_000_000)
    receive, name = {"form": (receive_form, TYPE), "raw": (receive_raw, "a")}[kind]
    with pytest.raises(DiskFull):
        await receive(unread(), name, tmp_path, space, LIMIT, content_length=1_000_001)
    content = bytes(1_000_000)
    upload = await receive_raw(stream([content]), "a", tmp_path, space, LIMIT, content_length=1_000_000)
    assert upload.size == 1_000_000


async def test_an_upload_keeps_the_space_that_it_still_needs(tmp_path, monkeypatch):
    space = DiskSpace(tmp_path)
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 9_000_000)
    begun, resumed = asyncio.Event(), asyncio.Event()

    async def slowly():
        yield bytes(2_000_000)
        begun.set()
        await resumed.wait()
        yield bytes(4_000_000)

    async def other(size, owner="other"):
        with working_for(Work(owner=owner)):
            return await receive_raw(stream([bytes(size)]), "a", tmp_path, space, LIMIT, content_length=size)

    first = asyncio.create_task(receive_raw(slowly(), "a", tmp_path, space, LIMIT, content_length=6_000_000))
    await begun.wait()
    with pytest.raises(DiskFull):
        await other(4_000_000)
    with pytest.raises(DiskFull, match="your uploads 6 MB"):
        await other(2_000_000, owner="")
    (await other(2_000_000)).remove()
    resumed.set()
    assert (await first).size == 6_000_000
    await other(3_000_000)


async def test_an_upload_of_unknown_length_stops_before_the_margin(tmp_path, monkeypatch):
    space = DiskSpace(tmp_path)
    disk = SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 4_000_000)
    least = disk.usage.free

    async def chunks():
        nonlocal least
        for _ in range(90):
            yield bytes(100_000)
            least = min(least, disk.usage.free)

    with pytest.raises(DiskFull):
        await receive_raw(chunks(), "a", tmp_path, space, LIMIT)
    assert MARGIN_BYTES <= least < MARGIN_BYTES + 2_000_000
    assert not left(tmp_path)


async def receive_raw_body(folder, *chunks, filename="talk.wav", **options):
    return await receive_raw(stream(chunks), filename, folder, disk(), LIMIT, **options)


@pytest.mark.parametrize("chunks", [[CONTENT], [bytes([byte]) for byte in CONTENT], [b"", CONTENT, b""]])
async def test_a_raw_body(tmp_path, chunks):
    upload = await receive_raw_body(tmp_path, *chunks, filename="../talks/ü.wav")
    assert upload.path.read_bytes() == CONTENT
    assert upload.sha256 == hashlib.sha256(CONTENT).hexdigest()
    assert (upload.size, upload.filename, upload.raw_pcm) == (len(CONTENT), "ü.wav", False)
    assert upload.path.stat().st_mode & 0o777 == 0o600


async def test_a_raw_body_may_be_text(tmp_path):
    assert (await receive_raw_body(tmp_path, b"talk.wav")).size == 8


@pytest.mark.parametrize("chunks", [[], [b""]])
async def test_an_empty_raw_body(tmp_path, chunks):
    with pytest.raises(InvalidInput, match="is empty"):
        await receive_raw_body(tmp_path, *chunks, filename="")
    assert not left(tmp_path)


@pytest.mark.parametrize("declared", [None, LIMIT + 1])
async def test_a_raw_body_that_is_too_large(tmp_path, declared):
    with pytest.raises(TooLarge, match="10 MB"):
        await receive_raw_body(tmp_path, *[bytes(500_000)] * 21, content_length=declared)
    assert not left(tmp_path)


async def test_a_raw_body_on_a_full_disk(tmp_path, monkeypatch):
    def fail(self):
        self._file.flush()
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(sinks.FileSink, "_close", fail)
    with pytest.raises(DiskFull):
        await receive_raw_body(tmp_path, bytes(3 << 20))
    assert not left(tmp_path)


@pytest.mark.parametrize("error", [ConnectionError("gone"), asyncio.CancelledError()])
async def test_a_stream_that_fails_leaves_nothing(tmp_path, error):
    async def failing():
        yield file(bytes(3 << 20))
        assert left(tmp_path)
        raise error

    with pytest.raises(type(error)):
        await receive_form(failing(), TYPE, tmp_path, disk(), LIMIT)
    assert not left(tmp_path)


async def test_cancelled_while_writing_leaves_nothing(tmp_path, monkeypatch):
    writing, unblocked = threading.Event(), threading.Event()
    write = sinks.FileSink._write

    def write_slowly(self):
        writing.set()
        assert unblocked.wait(5)
        write(self)

    monkeypatch.setattr(sinks.FileSink, "_write", write_slowly)
    receiving = asyncio.create_task(
        receive_form(stream([file(bytes(5 << 20))]), TYPE, tmp_path, disk(), LIMIT)
    )
    assert await asyncio.to_thread(writing.wait, 5)
    receiving.cancel()
    await asyncio.sleep(0.01)
    unblocked.set()
    with pytest.raises(asyncio.CancelledError):
        await receiving
    assert not left(tmp_path)


def test_leftovers_are_removed(tmp_path):
    remove_leftovers(tmp_path / "missing", set())
    for name in ("a" * 32, "c" * 32, "README"):
        (tmp_path / name).touch()
    (tmp_path / ("b" * 32)).mkdir()
    remove_leftovers(tmp_path, {"c" * 32, "d" * 32})
    assert sorted(path.name for path in left(tmp_path)) == ["README", "b" * 32, "c" * 32]
