"""yt-dlp, held to what is wanted of it: one recording over HTTP from public addresses, in one given file.

What a URL leads to is in the hands of strangers: redirects, pages, manifests, names. So yt-dlp gets one way
to the network, which resolves, checks and connects in one go; no other program, no configuration, plugins,
cookies of a browser, cache or proxies; and nothing that a site says becomes part of a path.

Imports yt-dlp, and so only ever in a child.
"""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from workers.addresses import AddressRefused, Resolver, check_url
from workers.disk import NO_SPACE_ERRNOS
from workers.download.fetch import RECORDING, Connect, Found

os.environ["YTDLP_NO_PLUGINS"] = "1"  # whatever lies about in this user's folders

from yt_dlp import YoutubeDL
from yt_dlp.downloader import get_suitable_downloader
from yt_dlp.downloader.dash import DashSegmentsFD
from yt_dlp.downloader.hls import HlsFD
from yt_dlp.downloader.http import HttpFD
from yt_dlp.networking import Request
from yt_dlp.utils import UnsupportedError

from workers.download.web import Network, WebRH
from workers.messages import RecordingRefused

MAX_HOPS = 10  # from page to page, beside the redirects of HTTP
SOCKET_TIMEOUT_S = 20
_DOWNLOADERS = (HttpFD, HlsFD, DashSegmentsFD)  # those that need no other program
_ONE_RECORDING = (None, "video", "url", "url_transparent")
_LIVE = ("is_live", "is_upcoming", "post_live")
_REASON_CHARS = 200


class Visit:
    """A look at a URL, and the download of what was seen."""

    def __init__(
        self, folder: Path, max_bytes: int, max_duration_s: float | None, resolver: Resolver, connect: Connect
    ) -> None:
        self._folder = folder
        self._max_bytes = max_bytes
        self._max_duration_s = max_duration_s
        self._network = Network(resolver, connect)
        self._site = _Site(self._network, self._watch)
        self._info: dict[str, Any] = {}

    def look(self, url: str) -> Found:
        """See `fetch.look`."""
        if "__youtubedl_smuggle" in url:  # how yt-dlp's own parts pass each other options within URLs
            raise RecordingRefused("url_refused", "The URL is malformed.")
        try:
            check_url(url)
        except AddressRefused as refusal:
            raise RecordingRefused("url_refused", str(refusal)) from None
        with self._clear_errors():
            info = self._site.extract_info(url, download=False) or {}
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
        return Found(str(info.get("title") or ""), str(info.get("ext") or ""), duration_s or None)

    def take(self) -> None:
        """See `fetch.take`."""
        with self._clear_errors():
            complete, _ = self._site.dl(str(self._folder / RECORDING), self._info)
        if not complete:
            raise _unavailable("the download is incomplete")

    def _check_kind(self, info: dict[str, Any]) -> None:
        if info.get("is_live") or info.get("live_status") in _LIVE:
            raise _live()
        if not info.get("url"):
            raise _unavailable("there is no recording at this URL")
        if get_suitable_downloader(info, self._site.params) not in _DOWNLOADERS:
            raise _unavailable("it is sent in a way that is not supported here")

    def _pin_manifest(self, info: dict[str, Any]) -> float:
        """Read an HLS manifest, for what is checked to be what is downloaded. The seconds that it lists."""
        response = self._site.urlopen(Request(info["url"], headers=info.get("http_headers") or {}))
        manifest = response.read().decode(errors="replace")
        if "#EXT-X-ENDLIST" not in manifest and "#EXT-X-PLAYLIST-TYPE:VOD" not in manifest:
            raise _live()
        info.update(url=response.url, hls_media_playlist_data=manifest)
        return sum(map(float, re.findall(r"#EXTINF:\s*(\d{1,9}(?:\.\d{1,9})?)", manifest)))

    def _watch(self, status: dict[str, Any]) -> None:
        """Called by yt-dlp after every piece: what counts is what lies on the disk."""
        self._check_size(status.get("total_bytes") or 0)
        self._check_size(sum(path.stat().st_size for path in self._folder.glob(f"{RECORDING}*")))

    def _check_size(self, size: float) -> None:
        if size > self._max_bytes:
            raise RecordingRefused(
                "file_too_large",
                f"The recording is over this service's limit of {self._max_bytes / 1e6:g} MB "
                "(WHISPER_MAX_UPLOAD_MB).",
            )

    @contextmanager
    def _clear_errors(self) -> Iterator[None]:
        """What goes wrong in yt-dlp and on the way, in words for whoever sent the URL."""
        try:
            yield
        except RecordingRefused:
            raise
        except Exception as error:
            # Extractors meet what they were not written for and fail in any way, not in yt-dlp's own alone.
            causes = list(_causes(error))
            for cause in causes:
                if isinstance(cause, OSError) and cause.errno in NO_SPACE_ERRNOS:
                    raise OSError(cause.errno, os.strerror(cause.errno)) from None
            if self._network.refusal is not None:
                raise RecordingRefused("url_refused", str(self._network.refusal)) from None
            raise _unavailable(_reason(causes)) from None


class _Silence:
    """A logger for yt-dlp: what matters comes as an exception."""

    def debug(self, message: str) -> None: ...

    info = warning = error = debug


class _Site(YoutubeDL):  # type: ignore[misc]
    """yt-dlp with one way to the network and an eye for playlists."""

    def __init__(self, network: Network, watch: Any) -> None:
        self._network = network
        self._hops = 0
        super().__init__(
            {
                "format": "bestaudio/best",
                "noplaylist": True,
                "logger": _Silence(),
                "quiet": True,
                "noprogress": True,
                "color": "no_color",
                "progress_hooks": [watch],
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
        """The director of requests, with our handler in the place of all others."""

        def handler(**options: Any) -> WebRH:
            return WebRH(self._network, **options)

        return super().build_request_director([handler])

    def urlopen(self, req: Any) -> Any:
        """Open a URL for whatever part of yt-dlp."""
        self._network.check_scheme(req if isinstance(req, str) else req.url)
        return super().urlopen(req)

    def process_ie_result(self, ie_result: Any, *args: Any, **kwargs: Any) -> Any:
        """Go on with what an extractor has found, unless that is several recordings."""
        if ie_result.get("_type") not in _ONE_RECORDING:
            raise RecordingRefused(
                "url_is_playlist",
                "The URL leads to a playlist or to several recordings. Send the URL of a single one.",
            )
        self._hops += 1
        if self._hops > MAX_HOPS:
            raise _unavailable("one page leads to another, and on and on")
        return super().process_ie_result(ie_result, *args, **kwargs)


def _live() -> RecordingRefused:
    return RecordingRefused("url_is_live", "The URL leads to a live stream. Send the URL of a recording.")


def _unavailable(reason: str) -> RecordingRefused:
    return RecordingRefused("url_unavailable", f"The recording could not be downloaded: {reason}.")


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """An exception and what led to it, as yt-dlp and Python note it down."""
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
    """The first line of what yt-dlp says, without what is meant for its own users."""
    if any(isinstance(cause, MemoryError) for cause in causes):
        return "what the site sends needs more memory than it should"
    if any(isinstance(cause, UnsupportedError) for cause in causes):
        return "there is no recording at this URL"
    told = next((cause.orig_msg for cause in causes if hasattr(cause, "orig_msg")), str(causes[0]))
    line = str(told).removeprefix("ERROR: ").partition("\n")[0]
    line = re.sub(
        r"^\[[\w:.-]+\] |\[Errno -?\d+\] |\s*\(caused by .*|; please report this issue.*|[; ]+see +https?://.*",
        "",
        line,
    )
    return (
        "".join(filter(str.isprintable, line))[:_REASON_CHARS].strip(" .")
        or "the site sends what is not understood"
    )
