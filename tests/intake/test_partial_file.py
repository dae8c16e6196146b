"""The file of a resumable upload: parts of any size, cuts, requests that come too early."""

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncIterator
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.common.errors import DiskFull, TooLarge, UploadConflict
from app.intake import file_sink as sinks
from app.intake import partial_file as module
from app.intake.disk import MARGIN_BYTES, DiskSpace
from app.intake.partial_file import PartialFile
from tests.intake.disks import SmallDisk

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(60)]

CONTENT = bytes(range(256)) * 9 + b"end"
SHA256 = hashlib.sha256(CONTENT).hexdigest()


class Cut(Exception):
    """The connection was lost."""


async def stream(*chunks: bytes, error: BaseException | None = None) -> AsyncIterator[bytes]:
    for chunk in chunks:
        await asyncio.sleep(0)
        yield chunk
    if error is not None:
        raise error


def partial(folder: Path, size: int = len(CONTENT)) -> PartialFile:
    """As after a start of the service: only the file itself knows what has arrived."""
    disk = DiskSpace(folder)
    path = folder / "file"
    space = disk.reserve(None, size, path.stat().st_size if path.exists() else 0)
    return PartialFile(path, size, space)


@settings(max_examples=60)
@given(
    cuts=st.lists(st.integers(0, len(CONTENT)), max_size=8),
    kinds=st.lists(st.sampled_from(["whole", "cut", "restart"]), min_size=9, max_size=9),
    buffer_bytes=st.sampled_from([1, 100, 1 << 20]),
    hashed_at_once=st.sampled_from([7, 1 << 20]),
)
async def test_any_parts_make_the_same_file(tmp_path_factory, cuts, kinds, buffer_bytes, hashed_at_once):
    folder = tmp_path_factory.mktemp("partial")
    edges = [0, *sorted(cuts), len(CONTENT)]
    file = partial(folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sinks, "BUFFER_BYTES", buffer_bytes)
        patch.setattr(module, "_HASHED_AT_ONCE", hashed_at_once)
        for (start, end), kind in zip(pairwise(edges), kinds, strict=False):
            part = CONTENT[start:end]
            halves = part[: len(part) // 2], part[len(part) // 2 :]
            async with file.lock():
                if kind == "cut":
                    with pytest.raises(Cut):
                        await file.append(stream(*halves, error=Cut()))
                else:
                    await file.append(stream(*halves))
                assert await file.received() == end
                assert file.space.outstanding == len(CONTENT) - end
            if kind == "restart":
                file = partial(folder)
        assert await file.sha256() == SHA256
    assert file.path.read_bytes() == CONTENT
    assert file.path.stat().st_mode & 0o777 == 0o600


async def test_the_hash_goes_on_without_reading_the_file_again(tmp_path, monkeypatch):
    def read_again(*arguments: object) -> None:
        pytest.fail("the file was read")

    monkeypatch.setattr(module, "_hash_more", read_again)
    file = partial(tmp_path)
    for start in range(0, len(CONTENT), 500):
        await file.append(stream(CONTENT[start : start + 500]))
    assert await file.sha256() == SHA256


async def test_a_complete_file_is_durable_and_others_need_not_be(tmp_path, monkeypatch):
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    file = partial(tmp_path)
    await file.append(stream(CONTENT[:10]))
    assert not synced
    await file.append(stream(CONTENT[10:]))
    assert synced == [len(CONTENT)]
    await file.sha256()
    assert synced == [len(CONTENT)]


async def test_a_file_that_another_process_completed_becomes_durable(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(CONTENT)
    synced = []
    monkeypatch.setattr(os, "fsync", lambda descriptor: synced.append(os.fstat(descriptor).st_size))
    assert await partial(tmp_path).sha256() == SHA256
    assert synced == [len(CONTENT)]


async def test_a_part_that_is_too_long_leaves_what_fits(tmp_path):
    file = partial(tmp_path)
    with pytest.raises(TooLarge):
        await file.append(stream(CONTENT[:-5], CONTENT[-5:] + b"x"))
    assert file.path.read_bytes() == CONTENT[:-5]
    await file.append(stream(CONTENT[-5:]))
    assert await file.sha256() == SHA256


async def test_the_next_turn_ends_a_part_that_waits_for_its_client(tmp_path):
    file = partial(tmp_path)
    fed = asyncio.Event()

    async def hanging() -> AsyncIterator[bytes]:
        yield CONTENT[:300]
        fed.set()
        await asyncio.Event().wait()

    async def first() -> None:
        async with file.lock():
            await file.append(hanging())

    request = asyncio.create_task(first())
    await fed.wait()
    async with file.lock():
        assert file.path.read_bytes() == CONTENT[:300]
        await file.append(stream(CONTENT[300:]))
    with pytest.raises(UploadConflict) as refused:
        await request
    assert refused.value.code == "upload_taken_over"
    assert await file.sha256() == SHA256


async def test_requests_one_after_the_other_never_write_at_once(tmp_path, monkeypatch):
    """Twenty requests hang, and each one ends the one before: the last one goes on."""
    monkeypatch.setattr(sinks, "BUFFER_BYTES", 1)
    file = partial(tmp_path, 100_000)
    writing = 0
    write = sinks.FileSink._write

    def count_writers(sink: sinks.FileSink) -> None:
        nonlocal writing
        writing += 1
        assert writing == 1
        write(sink)
        writing -= 1

    monkeypatch.setattr(sinks.FileSink, "_write", count_writers)

    async def hanging(number: int) -> AsyncIterator[bytes]:
        while number < 19 or await file.received() < 50_000:
            yield bytes([number]) * 100
            await asyncio.sleep(0)

    async def request(number: int) -> int:
        await asyncio.sleep(0.003 * number)
        async with file.lock():
            return await file.append(hanging(number))

    *others, last = await asyncio.gather(*map(request, range(20)), return_exceptions=True)
    assert all(isinstance(other, UploadConflict) for other in others)
    assert last == len(file.path.read_bytes()) >= 50_000
    assert file.path.read_bytes() == bytes(sorted(file.path.read_bytes()))


async def test_waiting_requests_end_one_that_has_not_begun(tmp_path):
    file = partial(tmp_path)
    entered, resumed = asyncio.Event(), asyncio.Event()

    async def first() -> None:
        async with file.lock():
            entered.set()
            await resumed.wait()
            await file.append(stream(CONTENT))

    async def second() -> int:
        async with file.lock():
            return await file.received()

    requests = asyncio.gather(first(), second(), return_exceptions=True)
    await entered.wait()
    await asyncio.sleep(0)
    resumed.set()
    refused, received = await requests
    assert isinstance(refused, UploadConflict)
    assert received == 0


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT])
async def test_a_failed_write_loses_nothing_that_is_in_the_file(tmp_path, monkeypatch, number):
    """A part of the bytes reached the file before the disk was full."""
    monkeypatch.setattr(sinks, "BUFFER_BYTES", 100)
    file = partial(tmp_path)
    write = sinks.FileSink._write

    def fail(sink: sinks.FileSink) -> None:
        if sink.size > 1000:
            assert sink._file is not None
            sink._file.write(sink._pending[0][:7])
            raise OSError(number, "No space left on device")
        write(sink)

    with monkeypatch.context() as patch:
        patch.setattr(sinks.FileSink, "_write", fail)
        chunks = [CONTENT[at : at + 50] for at in range(0, len(CONTENT), 50)]
        with pytest.raises(DiskFull):
            await file.append(stream(*chunks))
    received = await file.received()
    assert file.path.read_bytes() == CONTENT[:received]
    assert file.space.outstanding == len(CONTENT) - received
    await file.append(stream(CONTENT[received:]))
    assert await file.sha256() == SHA256


async def test_a_full_disk_keeps_what_arrived(tmp_path, monkeypatch):
    content = os.urandom(6_000_000)
    file = partial(tmp_path, len(content))
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 4_000_000)
    with pytest.raises(DiskFull):
        await file.append(stream(*(content[at : at + 50_000] for at in range(0, len(content), 50_000))))
    received = await file.received()
    assert 2_000_000 < received <= 4_000_000
    monkeypatch.undo()
    await file.append(stream(content[received:]))
    assert await file.sha256() == hashlib.sha256(content).hexdigest()


async def test_a_file_that_was_replaced_is_hashed_again(tmp_path):
    file = partial(tmp_path)
    await file.append(stream(b"x" * 700))
    file.path.write_bytes(CONTENT[:500])
    await file.append(stream(CONTENT[500:]))
    assert await file.sha256() == SHA256


async def test_a_time_out_of_the_body_is_not_taken_for_the_next_turn(tmp_path):
    file = partial(tmp_path)
    with pytest.raises(TimeoutError):
        await file.append(stream(CONTENT[:10], error=TimeoutError()))
    assert await file.received() == 10
