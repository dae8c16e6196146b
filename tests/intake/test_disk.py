"""Free space: the margin, and reservations."""

import shutil
from contextlib import closing
from pathlib import Path

import pytest

from app.common.errors import DiskFull
from app.intake.disk import MARGIN_BYTES, DiskSpace, Reservation
from tests.intake.disks import SmallDisk, Usage

MB = 10**6


def reserved(disk: DiskSpace, owner: str | None = None) -> closing[Reservation]:
    return closing(disk.reserve(owner))


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> DiskSpace:
    """The space of a disk with 100 MB above the margin."""
    SmallDisk(monkeypatch, tmp_path, MARGIN_BYTES + 100 * MB)
    return DiskSpace(tmp_path)


def test_a_margin_stays_free(disk: DiskSpace) -> None:
    with reserved(disk) as space:
        space.check(100 * MB)
        with pytest.raises(DiskFull):
            space.check(100 * MB + 1)
        space.expect(100 * MB)
        with pytest.raises(DiskFull):
            space.expect(100 * MB + 1)


def test_the_margin_of_a_small_disk_is_a_twentieth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    SmallDisk(monkeypatch, tmp_path, free=60 * MB, capacity=1000 * MB)
    assert DiskSpace(tmp_path).free() == 10 * MB


def test_reserved_space_is_not_available_to_others(disk: DiskSpace) -> None:
    with reserved(disk) as other:
        with reserved(disk) as space:
            space.expect(70 * MB)
            other.check(30 * MB)
            for refused in (other.check, other.expect):
                with pytest.raises(DiskFull):
                    refused(31 * MB)
            space.check(70 * MB)
        other.expect(100 * MB)


def test_declared_files_of_one_owner_reserve_a_part_of_the_disk(disk: DiskSpace) -> None:
    with (
        reserved(disk, "a") as first,
        reserved(disk, "a") as second,
        reserved(disk, "b") as other,
    ):
        first.expect(60 * MB)
        with pytest.raises(DiskFull, match=r"jobs hold 0 MB .* uploads 60 MB") as refused:
            second.expect(16 * MB)
        assert refused.value.code == "storage_share_full"
        second.expect(15 * MB)
        with reserved(disk, "b") as third:
            third.expect(5 * MB)
            with pytest.raises(DiskFull):
                other.expect(14 * MB)
            other.expect(13 * MB)


def test_what_jobs_hold_counts_where_there_are_others(disk: DiskSpace, tmp_path: Path) -> None:
    disk.stored["a"] = 60 * MB
    (tmp_path / "jobs").write_bytes(bytes(60 * MB))
    disk.check_share("a", 39 * MB)  # alone, it may have all
    disk.has_others = True
    disk.check_share("a", 15 * MB)
    with pytest.raises(DiskFull, match=r"jobs hold 60 MB .* Delete jobs"):
        disk.check_share("a", 16 * MB)
    with (
        reserved(disk, "a") as unknown,
        reserved(disk, "b") as other,
    ):  # whose sizes are not known
        unknown.check(15 * MB)
        with pytest.raises(DiskFull):
            unknown.check(16 * MB)
        other.check(40 * MB)


def test_no_owner_holds_more_than_the_settings_say(disk: DiskSpace) -> None:
    disk.most_stored = 20 * MB
    disk.stored["a"] = 15 * MB
    disk.check_share("a", 5 * MB)
    with pytest.raises(DiskFull):
        disk.check_share("a", 5 * MB + 1)
    disk.check_share("b", 20 * MB)


def test_the_first_declared_file_of_an_owner_may_take_all(disk: DiskSpace) -> None:
    with reserved(disk, "") as space:
        space.expect(100 * MB)


def test_written_bytes_are_no_longer_reserved(disk: DiskSpace, tmp_path: Path) -> None:
    with reserved(disk) as space, reserved(disk) as other:
        space.expect(70 * MB)
        (tmp_path / "file").write_bytes(bytes(20 * MB))
        space.written = 20 * MB
        assert space.outstanding == 50 * MB
        other.expect(30 * MB)
        space.written = 90 * MB
        assert space.outstanding == 0


def test_a_writer_may_use_what_it_reserved_although_others_have_reserved_too(
    disk: DiskSpace, tmp_path: Path
) -> None:
    """Another program took space after all of it was reserved."""
    with reserved(disk) as space, reserved(disk) as other:
        space.expect(50 * MB)
        other.expect(50 * MB)
        (tmp_path / "foreign").write_bytes(bytes(20 * MB))
        space.check(MB)
        with pytest.raises(DiskFull):
            space.check(51 * MB)


def test_a_file_system_that_does_not_know_its_size_has_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: Usage(0, 0, 0))
    with reserved(DiskSpace(tmp_path)) as space:
        space.expect(10**15)


def test_what_requests_at_another_front_end_reserve_is_not_available(disk: DiskSpace, tmp_path: Path) -> None:
    there = DiskSpace(tmp_path)

    with reserved(there, "a") as begun, reserved(disk) as here:
        begun.expect(50 * MB)
        disk.elsewhere = there.requested
        with pytest.raises(DiskFull):
            here.expect(51 * MB)
        here.expect(50 * MB)
        (tmp_path / "file").write_bytes(bytes(30 * MB))
        begun.written = 30 * MB
        disk.elsewhere = there.requested
        here.expect(50 * MB)
    with reserved(there, "a") as begun, reserved(disk, "a") as here, reserved(disk, "b") as other:
        begun.expect(40 * MB)
        disk.elsewhere = there.requested
        with pytest.raises(DiskFull) as refused:
            here.expect(15 * MB)
        assert refused.value.code == "storage_share_full"
        other.expect(30 * MB)
    disk.elsewhere = there.requested
    with reserved(disk) as here:
        here.expect(70 * MB)
