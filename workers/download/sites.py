"""Uses yt-dlp to download one recording over HTTP, from public addresses, into one given file.

Strangers control redirects, pages, manifests and names. So yt-dlp connects through `PublicNetwork` alone,
which resolves, checks and connects in one step. It runs no other program and uses no configuration, plugins,
browser cookies, cache or proxies. No text from a site becomes part of a path.

This module imports yt-dlp, so only download workers may import it.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workers.addresses import AddressRefused, Connect, Resolver, check_url
from workers.messages import NO_SPACE_ERRNOS

os.environ["YTDLP_NO_PLUGINS"] = "1"  # ignore plugins in this user's folders; yt-dlp reads this on import

from yt_dlp import YoutubeDL
from yt_dlp.downloader import get_suitable_downloader
from yt_dlp.downloader.dash import DashSegmentsFD
from yt_dlp.downloader.hls import HlsFD
from yt_dlp.downloader.http import HttpFD
from yt_dlp.networking import Request
from yt_dlp.utils import UnsupportedError

from workers.download.web import PublicNetwork, WebRH
from workers.messages import FoundRecording, RecordingRefused

MAX_HOPS = 10  # from page to page; redirects of HTTP are counted apart
SOCKET_TIMEOUT_S = 20
_DOWNLOADERS = (HttpFD, HlsFD, DashSegmentsFD)  # they run no other program
_ONE_RECORDING = (None, "video", "url", "url_transparent")
_LIVE = ("is_live", "is_upcoming", "post_live")
_REASON_CHARS = 200


class Visit:
    """Finds the recording behind a URL, and downloads it into `file`."""

    def __init__(
        self, file: Path, max_bytes: int, max_duration_s: float | None, resolver: Resolver, connect: Connect
    ) -> None:
        self._file = file
        self._max_bytes = max_bytes
        self._max_duration_s = max_duration_s
        self._network = PublicNetwork(resolver, connect)
        self._youtube_dl = _RestrictedYoutubeDL(self._network, self._check_progress)
        self._info: dict[str, Any] = {}

    def probe(self, url: str) -> FoundRecording:
        """See `fetch.probe`."""
        if "__youtubedl_smuggle" in url:  # yt-dlp would read options from such a URL
            raise RecordingRefused("url_refused", "The URL is malformed.")
        try:
            check_url(url)
        except AddressRefused as refusal:
            raise RecordingRefused("url_refused", str(refusal)) from None
        with self._translate_errors():
            info = self._youtube_dl.extract_info(url, download=False) or {}
            self._check_kind(info)
            duration_s = info.get("duration")
            if info["protocol"].startswith("m3u8"):
                duration_s = max(duration_s or 0.0, self._pin_manifest(info))
        if duration_s and self._max_duration_s is not None and duration_s > self._max_duration_s:
            raise RecordingRefused(
                "audio_too_long",
                f"The recording is longer than {self._max_duration_s:.0f} s, the most that is taken here.",
            )
        self._check_size(info.get("filesize") or 0)
        self._info = info
        return FoundRecording(str(info.get("title") or ""), str(info.get("ext") or ""), duration_s or None)

    def download(self) -> None:
        """See `fetch.download`."""
        with self._translate_errors():
            complete, _ = self._youtube_dl.dl(str(self._file), self._info)
        if not complete:
            raise _unavailable("the download is incomplete")

    def _check_kind(self, info: dict[str, Any]) -> None:
        if info.get("is_live") or info.get("live_status") in _LIVE:
            raise _live()
        if not info.get("url"):
            raise _unavailable("there is no recording at this URL")
        if get_suitable_downloader(info, self._youtube_dl.params) not in _DOWNLOADERS:
            raise _unavailable("its streaming protocol is not supported here")

    def _pin_manifest(self, info: dict[str, Any]) -> float:
        """Read an HLS manifest once, so that the checked one is the downloaded one. Returns its seconds."""
        response = self._youtube_dl.urlopen(Request(info["url"], headers=info.get("http_headers") or {}))
        manifest = response.read().decode(errors="replace")
        if "#EXT-X-ENDLIST" not in manifest and "#EXT-X-PLAYLIST-TYPE:VOD" not in manifest:
            raise _live()
        info.update(url=response.url, hls_media_playlist_data=manifest)
        return sum(map(float, re.findall(r"#EXTINF:\s*(\d{1,9}(?:\.\d{1,9})?)", manifest)))

    def _check_progress(self, status: dict[str, Any]) -> None:
        """Raise if the files on disk exceed the limit. yt-dlp calls this after each block it downloads."""
        self._check_size(status.get("total_bytes") or 0)
        self._check_size(sum(path.stat().st_size for path in self._file.parent.glob(f"{self._file.name}*")))

    def _check_size(self, size: float) -> None:
        if size > self._max_bytes:
            raise RecordingRefused(
                "file_too_large",
                f"The recording is over this service's limit of {self._max_bytes / 1e6:g} MB "
                "(WHISPER_MAX_UPLOAD_MB).",
            )

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of yt-dlp and of the network as RecordingRefused, and a full disk as OSError."""
        try:
            yield
        except RecordingRefused:
            raise
        except Exception as error:
            # Extractors may raise anything: they meet pages that they were not written for.
            causes = list(_causes(error))
            for cause in causes:
                if isinstance(cause, OSError) and cause.errno in NO_SPACE_ERRNOS:
                    raise OSError(cause.errno, os.strerror(cause.errno)) from None
            if self._network.refusal is not None:
                raise RecordingRefused("url_refused", str(self._network.refusal)) from None
            raise _unavailable(_reason(causes)) from None


class _SilentLogger:
    """A logger for yt-dlp that drops everything: errors come as exceptions."""

    def debug(self, message: str) -> None: ...

    info = warning = error = debug


class _RestrictedYoutubeDL(YoutubeDL):  # type: ignore[misc]
    """yt-dlp that connects through `PublicNetwork` alone and refuses playlists."""

    def __init__(self, network: PublicNetwork, on_progress: Any) -> None:
        self._network = network
        self._hops = 0
        super().__init__(
            {
                "format": "bestaudio/best",
                "noplaylist": True,
                "logger": _SilentLogger(),
                "quiet": True,
                "noprogress": True,
                "color": "no_color",
                "progress_hooks": [on_progress],
                "cachedir": False,
                "proxy": "",
                "geo_bypass": False,
                "default_search": "error",
                "enable_file_urls": False,
                "js_runtimes": {},
                "external_downloader": {"default": "native"},
                "ffmpeg_location": "/nonexistent",
                "hls_prefer_native": True,
                "socket_timeout": SOCKET_TIMEOUT_S,
                "retries": 2,
                "fragment_retries": 2,
                "skip_unavailable_fragments": False,
                "concurrent_fragment_downloads": 1,
                "continuedl": False,
                "nopart": True,
                "_no_ytdl_file": True,
                "updatetime": False,
            }
        )

    def build_request_director(self, handlers: object, preferences: object = None) -> Any:
        """Make the request director with our handler instead of all others."""

        def handler(**options: Any) -> WebRH:
            return WebRH(self._network, **options)

        return super().build_request_director([handler])

    def urlopen(self, req: Any) -> Any:
        """Open a URL. Every part of yt-dlp calls this."""
        self._network.check_scheme(req if isinstance(req, str) else req.url)
        return super().urlopen(req)

    def process_ie_result(self, ie_result: Any, *args: Any, **kwargs: Any) -> Any:
        """Process the result of an extractor. Raises RecordingRefused if it is several recordings."""
        if ie_result.get("_type") not in _ONE_RECORDING:
            raise RecordingRefused(
                "url_is_playlist",
                "The URL leads to a playlist or to several recordings. Send the URL of a single one.",
            )
        self._hops += 1
        if self._hops > MAX_HOPS:
            raise _unavailable("too many pages lead to one another")
        return super().process_ie_result(ie_result, *args, **kwargs)


def _live() -> RecordingRefused:
    return RecordingRefused("url_is_live", "The URL leads to a live stream. Send the URL of a recording.")


def _unavailable(reason: str) -> RecordingRefused:
    return RecordingRefused("url_unavailable", f"The recording could not be downloaded: {reason}.")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and all its causes, as yt-dlp and Python record them."""
    seen: set[int] = set()
    waiting = [error]
    while waiting:
        error = waiting.pop(0)
        if error is None or id(error) in seen or not isinstance(error, BaseException):
            continue
        seen.add(id(error))
        yield error
        exc_info = getattr(error, "exc_info", None) or (None, None)
        waiting += [exc_info[1], getattr(error, "cause", None), error.__cause__, error.__context__]


def _reason(causes: list[BaseException]) -> str:
    """The first line of yt-dlp's message, without its advice for its own users."""
    if any(isinstance(cause, MemoryError) for cause in causes):
        return "the site's data needs too much memory"
    if any(isinstance(cause, UnsupportedError) for cause in causes):
        return "there is no recording at this URL"
    message = next((cause.orig_msg for cause in causes if hasattr(cause, "orig_msg")), str(causes[0]))
    line = str(message).removeprefix("ERROR: ").partition("\n")[0]
    line = re.sub(
        r"^\[[\w:.-]+\] |\[Errno -?\d+\] |\s*\(caused by .*|; please report this issue.*|[; ]+see +https?://.*",
        "",
        line,
    )
    return (
        "".join(filter(str.isprintable, line))[:_REASON_CHARS].strip(" .")
        or "the site's answer is not understood"
    )
