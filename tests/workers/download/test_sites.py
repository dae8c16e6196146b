"""Downloads from good and bad sites. A connection that does not go to `tests.internet` fails the test."""

import contextlib
import gzip
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cases import read_cases
from tests.internet import MEDIA, OTHER, Answer, Internet, internet, redirect
from workers.download import sites, web
from workers.download.fetch import RECORDING
from workers.download.sites import Visit
from workers.messages import FoundRecording, RecordingRefused

pytestmark = pytest.mark.timeout(60)

SOUND = b"ID3" + bytes(range(256)) * 400
LIMIT = 1_000_000
URL = "http://media.example/talk.mp3"
SEGMENT = "http://media.example/1.ts"
NAMES = {"media.example": [MEDIA], "other.example": ["2606:2800:21f:cb07:6820:80da:af6b:8b2c", OTHER]}
HLS = "application/vnd.apple.mpegurl"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[Internet]:
    with internet(dict(NAMES), {URL: Answer(SOUND), SEGMENT: Answer(SOUND, kind="video/mp2t")}) as world:
        yield world


def visit(
    world: Internet, folder: Path, max_bytes: int = LIMIT, max_duration_s: float | None = None
) -> Visit:
    return Visit(folder / RECORDING, max_bytes, max_duration_s, world.resolver, world.connect)


def fetch(world: Internet, folder: Path, url: str, **limits: Any) -> tuple[FoundRecording, bytes]:
    site = visit(world, folder, **limits)
    found = site.probe(url)
    site.download()
    return found, (folder / RECORDING).read_bytes()


def refused(world: Internet, folder: Path, url: str, **limits: Any) -> str:
    """The code of the error that the download raises."""
    with pytest.raises(RecordingRefused) as error:
        fetch(world, folder, url, **limits)
    assert error.value.message.endswith((".", ")"))
    assert "\n" not in error.value.message
    return error.value.code


def page(text: str) -> Answer:
    return Answer(f"<html><title>A page</title><body>{text}</body></html>".encode(), kind="text/html")


def manifest(*lines: str, end: bool = True) -> Answer:
    text = "\n".join(["#EXTM3U", "#EXT-X-TARGETDURATION:10", *lines, *(["#EXT-X-ENDLIST"] if end else [])])
    return Answer(text.encode(), kind=HLS)


class TestGoodSites:
    def test_a_direct_link(self, world: Internet, tmp_path: Path) -> None:
        assert fetch(world, tmp_path, URL) == (FoundRecording("talk", "mp3", None), SOUND)
        assert set(world.connected) == {MEDIA}

    def test_a_file_without_a_media_type(self, world: Internet, tmp_path: Path) -> None:
        world.pages[URL] = Answer(SOUND, kind="application/octet-stream")
        assert fetch(world, tmp_path, URL)[1] == SOUND

    def test_a_body_without_length(self, world: Internet, tmp_path: Path) -> None:
        world.pages[URL] = Answer(SOUND, declared=False)
        assert fetch(world, tmp_path, URL)[1] == SOUND

    def test_redirects_from_one_public_host_to_another(self, world: Internet, tmp_path: Path) -> None:
        world.names["other.example"] = [OTHER]
        world.pages["http://media.example/a"] = redirect("http://other.example/b")
        world.pages["http://other.example/b"] = redirect("/talk.mp3")
        world.pages["http://other.example/talk.mp3"] = Answer(SOUND)
        found, sound = fetch(world, tmp_path, "http://media.example/a")
        assert (found.title, sound) == ("talk", SOUND)
        assert set(world.connected) == {MEDIA, OTHER}

    def test_the_next_address_if_one_does_not_answer(
        self, world: Internet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        world.pages["http://other.example/talk.mp3"] = Answer(SOUND)
        connect_to_world = world.connect

        def connect(address: tuple[str, int], timeout: float | None = None) -> Any:
            if ":" in address[0]:
                raise OSError("Network is unreachable")
            return connect_to_world(address, timeout)

        monkeypatch.setattr(world, "connect", connect)
        assert fetch(world, tmp_path, "http://other.example/talk.mp3")[1] == SOUND

    @pytest.mark.parametrize("coding", ["", "gzip"])
    def test_a_page_with_one_recording(self, world: Internet, tmp_path: Path, coding: str) -> None:
        answer = page(f'<video src="{URL}"></video>')
        if coding:
            assert isinstance(answer.body, bytes)
            answer = Answer(
                gzip.compress(answer.body), kind="text/html", headers={"Content-Encoding": coding}
            )
        world.pages["http://media.example/"] = answer
        assert fetch(world, tmp_path, "http://media.example/")[1] == SOUND

    def test_a_stream_in_segments(self, world: Internet, tmp_path: Path) -> None:
        world.pages["http://media.example/a"] = redirect("http://media.example/talk.m3u8")
        world.pages["http://media.example/talk.m3u8"] = manifest("#EXTINF:9.5,", "1.ts", "#EXTINF:3,", "1.ts")
        found, sound = fetch(world, tmp_path, "http://media.example/a")
        assert (found.duration_s, sound) == (12.5, SOUND * 2)

    def test_the_downloaded_manifest_is_the_checked_one(self, world: Internet, tmp_path: Path) -> None:
        url = "http://media.example/talk.m3u8"
        world.pages[url] = manifest("#EXTINF:9,", "1.ts")
        site = visit(world, tmp_path, max_duration_s=10)
        site.probe(url)
        world.pages[url] = manifest(*["#EXTINF:9,", "1.ts"] * 5)
        site.download()
        assert (tmp_path / RECORDING).read_bytes() == SOUND

    def test_only_the_recording_is_written(self, world: Internet, tmp_path: Path) -> None:
        world.pages["http://media.example/"] = page(
            f'<video src="{URL}" poster="/cover.jpg"><track src="/talk.vtt" kind="subtitles"></video>'
        )
        fetch(world, tmp_path, "http://media.example/")
        assert {path.name for path in tmp_path.iterdir()} == {RECORDING}
        assert world.requests == ["GET http://media.example/", f"GET {URL}"]

    def test_titles_and_extensions_do_not_become_paths(self, world: Internet, tmp_path: Path) -> None:
        folder = tmp_path / "folder"
        folder.mkdir()
        url = "http://media.example/..%2F..%2Fescape.mp3%2F..%2Fx.sh"
        world.pages[url] = Answer(
            SOUND, headers={"Content-Disposition": 'attachment; filename="/tmp/../e.sh"'}
        )
        assert fetch(world, folder, url)[1] == SOUND
        assert [path.name for path in tmp_path.iterdir()] == ["folder"]


# All spellings of addresses are those of `test_addresses`.
TARGETS = read_cases("downloads")["refused"]
ONE_OF_EACH = ("http://127.0.0.1/talk.mp3", "http://private.example/talk.mp3", "file:///etc/passwd")


class TestRefused:
    """Each is refused before any connection to the forbidden address."""

    @pytest.mark.parametrize(
        ("way", "target"),
        [
            pytest.param(
                way, target, marks=() if way == "typed" or target in ONE_OF_EACH else pytest.mark.soak
            )
            for way in ("typed", "redirect", "second redirect", "page", "segment", "key", "variant")
            for target in TARGETS
        ],
    )
    def test_private_targets_anywhere(self, world: Internet, tmp_path: Path, target: str, way: str) -> None:
        world.names |= {"private.example": ["10.0.0.1"], "mixed.example": [MEDIA, "127.0.0.1"]}
        world.pages |= {
            "http://media.example/redirect": redirect(target),
            "http://media.example/second redirect".replace(" ", "%20"): redirect("/redirect"),
            "http://media.example/page": page(f'<video src="{target}" type="video/mp4"></video>'),
            "http://media.example/segment": manifest("#EXTINF:9,", "1.ts", "#EXTINF:9,", target),
            "http://media.example/key": manifest(
                f'#EXT-X-KEY:METHOD=AES-128,URI="{target}"', "#EXTINF:9,", "1.ts"
            ),
            "http://media.example/variant": Answer(
                f"#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=64000\n{target}\n".encode(), kind=HLS
            ),
        }
        url = target if way == "typed" else f"http://media.example/{way}".replace(" ", "%20")
        assert refused(world, tmp_path, url) == "url_refused"
        assert set(world.connected) <= {MEDIA}

    def test_a_name_that_resolves_to_a_private_address_later(self, world: Internet, tmp_path: Path) -> None:
        answers = iter([[MEDIA], ["10.0.0.1"]])
        world.names["media.example"] = answers
        site = visit(world, tmp_path)
        assert site.probe(URL).title == "talk"
        with pytest.raises(RecordingRefused, match=r"media\.example leads to an address"):
            site.download()
        assert world.connected == [MEDIA]
        assert next(answers, None) is None

    def test_options_for_yt_dlp_within_the_url(self, world: Internet, tmp_path: Path) -> None:
        assert (
            refused(world, tmp_path, f"{URL}#__youtubedl_smuggle=%7B%22to_generic%22%3A1%7D") == "url_refused"
        )
        assert world.connected == []

    @pytest.mark.parametrize(
        "answer",
        [
            page(f'<video src="{URL}"></video><video src="{SEGMENT}"></video>'),
            Answer(
                b'<?xml version="1.0"?><rss version="2.0"><channel><title>Talks</title><item>'
                b"<title>One</title>"
                b'<enclosure url="http://media.example/talk.mp3"/></item></channel></rss>',
                kind="text/xml",
            ),
        ],
    )
    def test_playlists(self, world: Internet, tmp_path: Path, answer: Answer) -> None:
        world.pages["http://media.example/list"] = answer
        assert refused(world, tmp_path, "http://media.example/list") == "url_is_playlist"
        assert world.requests == ["GET http://media.example/list"]

    def test_live_streams(self, world: Internet, tmp_path: Path) -> None:
        world.pages["http://media.example/live.m3u8"] = manifest("#EXTINF:9,", "1.ts", end=False)
        assert refused(world, tmp_path, "http://media.example/live.m3u8") == "url_is_live"
        assert f"GET {SEGMENT}" not in world.requests

    def test_live_dash(self, world: Internet, tmp_path: Path) -> None:
        world.pages["http://media.example/live"] = dash('type="dynamic"')
        assert refused(world, tmp_path, "http://media.example/live") == "url_is_live"

    def test_dash_with_segments_of_the_private_network(self, world: Internet, tmp_path: Path) -> None:
        world.pages["http://media.example/dash"] = dash("", "http://10.0.0.1/")
        assert refused(world, tmp_path, "http://media.example/dash") == "url_refused"
        assert set(world.connected) == {MEDIA}

    def test_streams_that_need_other_programs(self, world: Internet, tmp_path: Path) -> None:
        world.pages["http://media.example/"] = page('<video src="rtmp://media.example/talk"></video>')
        assert refused(world, tmp_path, "http://media.example/") == "url_unavailable"

    @pytest.mark.parametrize("answer", [page("nothing"), Answer(status=404), Answer(status=500), Answer(b"")])
    def test_pages_without_a_recording(self, world: Internet, tmp_path: Path, answer: Answer) -> None:
        world.pages["http://media.example/"] = answer
        assert refused(world, tmp_path, "http://media.example/") == "url_unavailable"

    def test_streams_with_a_missing_segment(self, world: Internet, tmp_path: Path) -> None:
        lines = ["#EXTINF:9,", "1.ts", "#EXTINF:9,", "missing.ts", "#EXTINF:9,", "1.ts"]
        world.pages["http://media.example/a.m3u8"] = manifest(*lines)
        assert refused(world, tmp_path, "http://media.example/a.m3u8") == "url_unavailable"

    def test_redirects_in_a_circle(self, world: Internet, tmp_path: Path) -> None:
        world.pages[URL] = redirect("/b")
        world.pages["http://media.example/b"] = redirect("/talk.mp3")
        assert refused(world, tmp_path, URL) == "url_unavailable"

    def test_pages_in_a_circle(self, world: Internet, tmp_path: Path) -> None:
        world.pages |= {
            f"http://media.example/{number}": page(
                f'<meta http-equiv="refresh" content="0; url=http://media.example/{number + 1}">'
            )
            for number in range(100)
        }
        assert refused(world, tmp_path, "http://media.example/0") == "url_unavailable"
        assert len(world.requests) <= 2 * sites.MAX_HOPS

    def test_unknown_host_names(self, world: Internet, tmp_path: Path) -> None:
        assert refused(world, tmp_path, "http://nowhere.example/") == "url_unavailable"


def dash(attributes: str, base: str = "http://media.example/") -> Answer:
    return Answer(
        f'<?xml version="1.0"?><MPD xmlns="urn:mpeg:dash:schema:mpd:2011" {attributes} '
        f'mediaPresentationDuration="PT12S"><Period><AdaptationSet mimeType="audio/mp4">'
        f'<Representation id="1" bandwidth="64000"><BaseURL>{base}</BaseURL><SegmentList duration="6">'
        f'<SegmentURL media="1.ts"/><SegmentURL media="1.ts"/></SegmentList></Representation>'
        f"</AdaptationSet></Period></MPD>".encode(),
        kind="application/dash+xml",
    )


class TestLimits:
    def test_a_declared_size(self, world: Internet, tmp_path: Path) -> None:
        world.pages[URL] = Answer(SOUND, headers={"Content-Length": str(LIMIT + 1)}, declared=False)
        assert refused(world, tmp_path, URL) == "file_too_large"
        assert (tmp_path / RECORDING).stat().st_size < len(SOUND)

    @pytest.mark.parametrize("length", [{}, {"Content-Length": "1000"}])
    def test_an_endless_body(self, world: Internet, tmp_path: Path, length: dict[str, str]) -> None:
        world.pages[URL] = Answer(lambda: iter(lambda: bytes(65536), b""), headers=length, declared=False)
        if "1000" in length.values():
            assert fetch(world, tmp_path, URL)[1] == bytes(1000)
        else:
            assert refused(world, tmp_path, URL) == "file_too_large"
        assert (tmp_path / RECORDING).stat().st_size < LIMIT + (8 << 20)

    def test_endless_segments(self, world: Internet, tmp_path: Path) -> None:
        world.pages["http://media.example/a.m3u8"] = manifest(*["#EXTINF:9,", "1.ts"] * 1000)
        assert refused(world, tmp_path, "http://media.example/a.m3u8") == "file_too_large"
        assert world.requests.count(f"GET {SEGMENT}") <= LIMIT // len(SOUND) + 1

    def test_a_decompression_bomb(
        self, world: Internet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(web, "MAX_PAGE_BYTES", 1 << 20)
        bomb = gzip.compress(b"<html>" + bytes(1 << 20))
        world.pages[URL] = Answer(bomb, kind="text/html", headers={"Content-Encoding": "gzip"})
        with pytest.raises(RecordingRefused, match="page of more than 1 MiB"):
            fetch(world, tmp_path, URL)

    @pytest.mark.parametrize("kind", ["text/html", "audio/mpeg"])
    def test_recordings_and_pages_compressed_twice(self, world: Internet, tmp_path: Path, kind: str) -> None:
        bomb = gzip.compress(gzip.compress(bytes(1000)))
        world.pages[URL] = Answer(bomb, kind=kind, headers={"Content-Encoding": "gzip, gzip"})
        assert refused(world, tmp_path, URL) == "url_unavailable"

    def test_an_endless_page(self, world: Internet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(web, "MAX_PAGE_BYTES", 1 << 20)
        world.pages[URL] = Answer(lambda: iter(lambda: b"<html>" * 9999, b""), kind="text/html")
        with pytest.raises(RecordingRefused, match="page of more than 1 MiB"):
            fetch(world, tmp_path, URL)

    def test_a_site_that_stops_sending(
        self, world: Internet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(sites, "SOCKET_TIMEOUT_S", 0.05)
        world.pages[URL] = Answer(SOUND, headers={"Content-Length": str(2 * len(SOUND))}, declared=False)
        stall = os.pipe()

        def stalled() -> Iterator[bytes]:
            yield SOUND[:1000]
            os.read(stall[0], 1)

        world.pages[URL] = Answer(stalled, headers={"Content-Length": "100000"})
        try:
            assert refused(world, tmp_path, URL) == "url_unavailable"
        finally:
            os.write(stall[1], b"x" * 9)
            world.close()
            for end in stall:
                os.close(end)

    def test_a_duration_in_the_manifest(self, world: Internet, tmp_path: Path) -> None:
        world.pages["http://media.example/a.m3u8"] = manifest("#EXTINF:9.5,", "1.ts", "#EXTINF:3,", "1.ts")
        assert refused(world, tmp_path, "http://media.example/a.m3u8", max_duration_s=12) == "audio_too_long"
        assert f"GET {SEGMENT}" not in world.requests
        fetch(world, tmp_path, "http://media.example/a.m3u8", max_duration_s=12.5)

    def test_a_full_disk(self, world: Internet, tmp_path: Path) -> None:
        (tmp_path / RECORDING).symlink_to("/dev/full")
        with pytest.raises(OSError, match="No space left"):
            fetch(world, tmp_path, URL)


def test_plugins_and_configuration_of_the_user_are_ignored(
    world: Internet, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from yt_dlp.globals import all_plugins_loaded, plugin_ies

    plugins = tmp_path / "yt-dlp" / "plugins" / "p" / "yt_dlp_plugins" / "extractor"
    plugins.mkdir(parents=True)
    (plugins / "evil.py").write_text("raise SystemExit('a plugin was loaded')")
    (tmp_path / "yt-dlp" / "config").write_text("--exec 'touch evil'\n--proxy http://127.0.0.1:9")
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    monkeypatch.setattr(all_plugins_loaded, "value", False)
    fetch(world, tmp_path, URL)
    assert plugin_ies.value == {}
    with contextlib.suppress(FileNotFoundError):
        pytest.fail(f"{(tmp_path / 'evil').stat()}")
