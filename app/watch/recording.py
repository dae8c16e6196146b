"""One recording on its way to its subtitle, from the moment that its file is complete."""

import asyncio
import errno
import os
import time
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum
from pathlib import Path
from typing import Any, BinaryIO

from app.client.answers import KeyTaken, NotNow, NotRead, Refused
from app.client.jobs import JobClient, option_fields
from app.common.errors import RECORDING_AT_FAULT, WhisperfleetError
from app.watch import sidecar
from app.watch.report import Report, shown
from app.watch.rules import Rules
from app.watch.sidecar import language_title, players_code
from app.watch.state import DONE, FAILED, SKIPPED, SUBMITTED, Entry, State, Version
from app.watch.streams import LARGE_BYTES, HeaderReader, SoundExtractor
from workers.messages import clock

UPLOADS_AT_ONCE = 2  # reading more files at once would only make a disk seek
_RESUBMISSIONS = 3
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 60.0, 86_400.0  # after failures of a job; each pause is twice as long
_MAX_FILENAME_CHARS = 200


class RunResult(Enum):
    """What is left to do for a recording."""

    FINISHED = "finished"
    CHANGED = "changed"  # the file has other contents now: wait until it is complete again
    LATER = "later"  # something around it is wrong


class Changed(Exception):
    """The file has other contents now."""


class Deleted(Exception):
    """The file was deleted."""


class Unavailable(Exception):
    """The file system of the file is not there, or does not answer."""


@dataclass(slots=True)
class Tools:
    """What all recordings share."""

    rules: Rules
    state: State
    client: JobClient
    headers: HeaderReader
    sound: SoundExtractor
    report: Report
    search_again: Callable[[], Awaitable[None]]  # a search of all folders that starts now
    search_soon: Callable[[list[Path]], None]  # of some folders
    large_bytes: int = LARGE_BYTES
    writing: set[Path] = field(default_factory=set)  # temporary files of this process
    # Of recordings whose jobs failed: the pause (s), and when it is over (monotonic). A restart forgets them.
    pauses: dict[Version, tuple[float, float]] = field(default_factory=dict)
    uploads: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(UPLOADS_AT_ONCE))


@dataclass(slots=True)
class Recording:
    """A recording that is being transcribed. `run` once."""

    path: Path  # changes when the file is renamed
    version: Version
    tools: Tools
    seen_at: Path | None = None  # another path where a search has found this version
    _device: int | None = None  # of the file system
    _began: float = field(default_factory=time.monotonic)

    async def run(self) -> RunResult:
        """Transcribe the recording and write its subtitle, as far as the rules want that."""
        report, pauses = self.tools.report, self.tools.pauses
        if self.version in pauses and time.monotonic() < pauses[self.version][1]:
            return RunResult.LATER
        try:
            try:
                with suppress(FileNotFoundError):
                    self._device = (await asyncio.to_thread(self.path.stat)).st_dev
                entry = await self._recall()
                if not entry.is_final(self.version, self.tools.rules.digest):
                    await self._transcribe(entry)
            except FileNotFoundError:
                await self._check_file(must_be_there=True)
                return RunResult.CHANGED  # it was renamed just then
            except Refused as error:
                await self._end(FAILED)
                report.failed(self.path, error.message)
        except Changed:
            await self._drop()
            return RunResult.CHANGED
        except Deleted:
            if await self._drop():
                report.deleted(self.path)
            return RunResult.FINISHED
        except Unavailable:
            folder = shown(self.path.parent)
            report.say_once(str(self.path.parent), f"{folder} is not there: its recordings wait for it")
            return RunResult.LATER
        except (NotRead, NotNow) as error:
            message = error.message.removesuffix(".")
            report.say_once(str(self.path), f"{shown(self.path)}: {message}. It is tried again.")
            return RunResult.LATER
        except OSError as error:
            return await self._not_written(error)
        except WhisperfleetError as error:  # of the state
            report.say_once("state", f"{error.message}. It is tried again.")
            return RunResult.LATER
        pauses.pop(self.version, None)
        report.solved(str(self.path.parent))
        report.solved("state")
        return RunResult.FINISHED

    async def _recall(self) -> Entry:
        """What is known of this version of the recording, under whatever name."""
        entry = await self._stored()
        if entry is not None and entry.version.same_content(self.version):
            return replace(entry, version=self.version)
        for other in await asyncio.to_thread(self.tools.state.with_version, self.version):
            if other.path != self.path and not await asyncio.to_thread(_has, other.path, self.version):
                return await self._renamed(other)
        if entry is not None and entry.job:
            await self.tools.client.delete(entry.job)  # of the contents that were there before
        known = entry or Entry(self.path, self.version, "", "")
        # A subtitle of the earlier contents may be replaced.
        return Entry(
            self.path, self.version, "", "", sidecar=known.sidecar, sidecar_digests=known.sidecar_digests
        )

    async def _renamed(self, entry: Entry) -> Entry:
        """Store that the recording of `entry` has this path now, and let its subtitle follow."""
        moved = await asyncio.to_thread(self.tools.state.move, entry, self.path)
        if moved.status == DONE and moved.sidecar is not None:
            suffix = moved.sidecar.name.removeprefix(entry.path.stem)
            target = self.path.with_name(self.path.stem + suffix)
            with suppress(OSError):
                if await asyncio.to_thread(_follow, moved, target):
                    moved = replace(moved, sidecar=target)
                    await self._store(moved)
                    self.tools.report.moved(self.path, target)
        return moved

    async def _transcribe(self, entry: Entry) -> None:
        """Raises Changed, Deleted, Unavailable, Refused, NotRead, NotNow, OSError and DatabaseUnavailable."""
        rules, client = self.tools.rules, self.tools.client
        await asyncio.to_thread(_check_writable, self.path.parent)
        if entry.sidecar is not None:
            await asyncio.to_thread(sidecar.recover, entry.sidecar, entry.sidecar_digests)
        if entry.status != SUBMITTED or entry.digest != rules.digest:
            if entry.job:
                await client.delete(entry.job)
            entry = replace(entry.without_job(), status="", digest=rules.digest)
            if reason := await self._reason_to_skip(entry):
                await self._skip(reason)
                return
        failed = await client.job(entry.job) if entry.job else None
        if failed and _may_pass(failed) and not await client.run_again(entry.job):
            await client.delete(entry.job)
            entry = entry.without_job()
        for _ in range(_RESUBMISSIONS):
            entry = await self._submit(entry)
            job = await self._wait(entry)
            content = await client.result(entry.job, rules.file_format) if job else None
            if job is not None and content is not None:
                break
            entry = entry.without_job()
        else:
            raise Refused("Its job was deleted on the service, again and again.")
        entry = await self._stored() or entry  # the recording may have been renamed
        language = "en" if rules.options.task == "translate" else str(job["language"])
        warnings = job.get("warnings", ())  # older services have none
        self.tools.report.warn(self.path, (warning["message"] for warning in warnings))
        if job.get("excerpt") == "":
            await self._skip("nobody speaks in it")
        elif reason := rules.other_language(language) or rules.too_short(job["duration"] or 0):
            await self._skip(reason)
        elif not await self._write(entry, language, content):
            await self._skip(f"{self._target(language).name} is there, and this program has not written it")
        else:
            took = clock(time.monotonic() - self._began)
            length = clock(job["duration"] or 0)
            details = f"{language_title(language)}, {length} in {took}"
            self.tools.report.done(self.path, self._target(language), details)
        await self._forget_job()

    def _target(self, language: str) -> Path:
        return sidecar.path_of(self.path, language, self.tools.rules.file_format)

    async def _stored(self) -> Entry | None:
        return await asyncio.to_thread(self.tools.state.get, self.path)

    async def _store(self, entry: Entry) -> None:
        await asyncio.to_thread(self.tools.state.put, entry)

    async def _forget_job(self) -> None:
        """Delete the job, whose recording would take space on the service until it expires."""
        entry = await self._stored()
        if entry is not None and entry.job:
            await self.tools.client.delete(entry.job)
            await self._store(entry.without_job())

    async def _end(self, status: str) -> None:
        """Store how it ended. The job, if there is one, is deleted."""
        entry = await self._stored() or Entry(self.path, self.version, "", "")
        digest = self.tools.rules.digest
        await self._store(replace(entry, version=self.version, status=status, digest=digest))
        await self._forget_job()

    async def _skip(self, reason: str) -> None:
        await self._end(SKIPPED)
        self.tools.report.skipped(self.path, reason)

    async def _drop(self) -> bool:
        """Forget the recording, and cancel its job. Returns whether it had one."""
        with suppress(WhisperfleetError):
            entry = await self._stored()
            if entry is None or not entry.version.same_content(self.version) or entry.status != SUBMITTED:
                return False
            if entry.sidecar is None:
                await asyncio.to_thread(self.tools.state.forget, self.path)
            else:
                await self._store(replace(entry.without_job(), status=""))
            if entry.job:
                await self.tools.client.delete(entry.job)
            return True
        return False

    async def _reason_to_skip(self, entry: Entry) -> str | None:
        """Why the rules exclude the recording, or None. Detects its language if that decides.

        Raises NotRead, Refused, OSError and DatabaseUnavailable.
        """
        rules = self.tools.rules
        embedded: tuple[str, ...] = ()
        if rules.min_duration_s or rules.skip_existing:
            streams = await self.tools.headers.read(self.path)
            embedded = streams.subtitles
            if streams.seconds and (reason := rules.too_short(streams.seconds)):
                return reason
        covered = await asyncio.to_thread(self._subtitles, entry, embedded)
        if (everything := covered.get(None)) is not None:
            return f"it has subtitles: {everything}"
        wanted = [rules.language] if rules.language else list(rules.only_languages)
        codes = [players_code(language) for language in wanted]
        if codes and covered.keys() >= set(codes):
            titles = " and ".join(map(language_title, wanted))
            return f"it has {titles} subtitles: {covered[codes[0]]}"
        if rules.language or not (covered or rules.only_languages):
            return None
        language = entry.language or await self._detect_language(entry)
        if reason := rules.other_language(language):
            return reason
        if (found := covered.get(players_code(language))) is not None:
            return f"it has {language_title(language)} subtitles: {found}"
        return None

    def _subtitles(self, entry: Entry, embedded: tuple[str, ...]) -> dict[str | None, str]:
        """Where subtitles are that need no second one, as `Rules.subtitles` has them. Raises OSError."""
        found = self.tools.rules.subtitles(self.path, embedded)
        own = entry.sidecar.name if entry.sidecar and _is_own(entry, entry.sidecar) else None
        return {language: shown(Path(where)) for language, where in found.items() if where != own}

    async def _detect_language(self, entry: Entry) -> str:
        """The language spoken, which is stored: it does not change with the rules."""
        async with self.tools.uploads, self._file_to_send() as file:
            language = await self.tools.client.detect_language(file, _clean_name(self.path))
        await self._store(replace(entry, language=language))
        return language

    async def _submit(self, entry: Entry) -> Entry:
        """The entry with its job."""
        rules = self.tools.rules
        fields = option_fields(rules.options) | ({"model": rules.model} if rules.model else {})
        while not entry.job:
            entry = replace(
                entry,
                status=SUBMITTED,
                key=entry.key or uuid.uuid4().hex,
                filename=entry.filename or _clean_name(self.path),
            )
            await self._store(entry)  # first: after a kill, the key finds the job
            async with self.tools.uploads, self._file_to_send() as file:
                try:
                    job = await self.tools.client.submit(file, entry.filename, fields, entry.key)
                except KeyTaken:
                    entry = replace(entry, key="", filename="")
                    continue
                entry = replace(entry, path=self.path, job=str(job["id"]))
                await self._store(entry)
        return entry

    @asynccontextmanager
    async def _file_to_send(self) -> AsyncIterator[BinaryIO]:
        """The recording's file, or one with its sound alone if it is large and its usual sound is wanted.

        Raises Changed, also at the end if the recording has changed meanwhile, Refused, NotRead and
        FileNotFoundError.
        """
        options = self.tools.rules.options
        is_usual = options.audio_track is None and options.channels == "mix"
        with await asyncio.to_thread(self._open) as file:
            if self.version.size < self.tools.large_bytes or not is_usual:
                yield file
            else:
                async with self.tools.sound.sound_of(self.path) as (path, warnings):
                    self.tools.report.warn(self.path, (warning.message for warning in warnings))
                    with await asyncio.to_thread(path.open, "rb") as sound:
                        yield sound
            if not Version.of(os.fstat(file.fileno())).same_content(self.version):
                raise Changed

    def _open(self) -> BinaryIO:
        """The recording's file, for reading. Raises Changed, NotRead and FileNotFoundError."""
        try:
            file = self.path.open("rb")
        except FileNotFoundError:
            raise
        except OSError as error:
            raise NotRead(f"it cannot be read: {error.strerror}") from None
        if not Version.of(os.fstat(file.fileno())).same_content(self.version):
            file.close()
            raise Changed
        return file

    async def _wait(self, entry: Entry) -> dict[str, Any] | None:
        """The job once it has succeeded; None if somebody deleted it.

        Raises Changed, Deleted, NotNow, Refused, and NotRead if the recording is not at fault.
        """
        async for job in self.tools.client.follow(entry.job):
            if job is None or job["status"] == "cancelled":
                return None
            await self._check_file(must_be_there=job["status"] == "succeeded")
            if job["status"] == "failed":
                message = str((job["error"] or {}).get("message") or "The service gives no reason.")
                if not _may_pass(job):
                    raise Refused(message)
                last_s, _ = self.tools.pauses.get(self.version, (_FIRST_PAUSE_S / 2, 0.0))
                pause_s = min(2 * last_s, _LONGEST_PAUSE_S)
                self.tools.pauses[self.version] = (pause_s, time.monotonic() + pause_s)
                raise NotRead(message)  # the next run has the job run again
        return job  # which has succeeded

    async def _check_file(self, *, must_be_there: bool) -> None:
        """Look whether the file is still there and the same, perhaps under another name.

        Raises Changed and Deleted, and Unavailable if it `must_be_there` and nobody can tell.
        """
        while True:
            try:
                status = await asyncio.to_thread(self.path.stat)
            except (FileNotFoundError, NotADirectoryError):
                if await self._find_again():
                    continue
                # A file system that is gone takes its files along, and they are not deleted.
                if await asyncio.to_thread(_device_above, self.path) == self._device:
                    raise Deleted from None
            except OSError:
                pass  # such as a network mount whose server is gone
            else:
                if Version.of(status).same_content(self.version):
                    return
                if not await self._find_again():  # renamed, if another file took its name
                    raise Changed
                continue
            if must_be_there:
                raise Unavailable
            return

    async def _find_again(self) -> bool:
        """Search for the file under another name, which becomes `path`."""
        for _ in range(2):  # a file that is renamed twice may slip through one search
            self.seen_at = None
            await self.tools.search_again()
            if self.seen_at is not None:
                entry = await self._stored()
                if entry is not None and entry.version.same_content(self.version):
                    await asyncio.to_thread(self.tools.state.move, entry, self.seen_at)
                left, self.path = self.path.parent, self.seen_at
                self.tools.search_soon([left])  # another file may have taken its name
                return True
        return False

    async def _write(self, entry: Entry, language: str, content: bytes) -> bool:
        """Write the subtitle. Returns False if there is one of somebody else. Raises OSError."""
        target = self._target(language)
        before = await asyncio.to_thread(sidecar.claim, target, entry.sidecar_digests)
        if before is None:
            return False
        digest = sidecar.digest_of(content)
        # First: after a kill, both contents count as those of this program.
        entry = replace(entry, status=SUBMITTED, sidecar=target, sidecar_digests=(before, digest))
        await self._store(entry)
        temporary = sidecar.temporary_path(target)
        self.tools.writing.add(temporary)
        try:
            written = await asyncio.to_thread(sidecar.write, target, content, self.path, before)
        finally:
            self.tools.writing.discard(temporary)
        if written:
            await self._store(replace(entry, status=DONE, sidecar_digests=(digest,), language=language))
        return written

    async def _not_written(self, error: OSError) -> RunResult:
        """After an error of the folder. The job stays, so only the writing is repeated."""
        if error.errno == errno.ENAMETOOLONG:
            await self._end(FAILED)
            self.tools.report.failed(self.path, "Its name is too long for a subtitle beside it.")
            return RunResult.FINISHED
        folder = self.path.parent
        self.tools.report.say_once(
            str(folder),
            f"{shown(folder)}: subtitles cannot be written: {error.strerror}. It is tried again each minute.",
        )
        return RunResult.LATER


def _may_pass(job: Mapping[str, Any]) -> bool:
    """Whether a job failed, and a later attempt may succeed."""
    return job["status"] == "failed" and (job["error"] or {}).get("code") not in RECORDING_AT_FAULT


def _has(path: Path, version: Version) -> bool:
    """Whether a file is at a path in this version, or may be: its file system does not answer."""
    try:
        return Version.of(path.stat()) == version
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _device_above(path: Path) -> int | None:
    """The file system of the nearest folder above a path that exists. None if it does not answer."""
    for folder in path.parents:
        try:
            return folder.stat().st_dev
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError:
            return None
    return None


def _check_writable(folder: Path) -> None:
    """Raise OSError if no file can be created in a folder."""
    if not os.access(folder, os.W_OK | os.X_OK):
        folder.stat()  # not there, perhaps
        raise PermissionError(errno.EACCES, "the folder is read-only")


def _is_own(entry: Entry, path: Path) -> bool:
    """Whether a subtitle is as this program wrote it, or was about to when it was killed."""
    return sidecar.digest(path) in entry.sidecar_digests


def _follow(entry: Entry, target: Path) -> bool:
    """Move an entry's subtitle, if it is as this program wrote it."""
    source = entry.sidecar
    return source is not None and _is_own(entry, source) and sidecar.move(source, target)


def _clean_name(path: Path) -> str:
    """The name of a file for the service: printable, and not too long."""
    name = "".join(c if c.isprintable() else "_" for c in shown(Path(path.name)))
    return name if len(name) <= _MAX_FILENAME_CHARS else name[-_MAX_FILENAME_CHARS:]
