"""Settings that make no sense, and those that must not be repeated."""

import base64
import importlib.util

import pytest
from standardwebhooks import Webhook

from app.errors import InvalidSetting
from app.settings import load_settings

KEY = base64.b64encode(bytes(range(200, 232))).decode()


@pytest.fixture(autouse=True)
def _no_env_file(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.chdir(str(tmp_path))


@pytest.mark.parametrize("secret", [KEY, f"whsec_{KEY}", KEY.rstrip("="), "whsec_AAAA", "AAA"])
def test_webhook_secrets_that_the_library_takes(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHISPER_WEBHOOK_SECRET", secret)
    assert load_settings().webhook_secret == secret
    Webhook(secret)


@pytest.mark.parametrize(
    "secret", ["s3cret!", "hunter2!", "A", "=", "whsec_", "p_ss-word", "pässword", "AAAA AAAA"]
)
def test_other_secrets_stop_the_start_and_are_not_repeated(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHISPER_WEBHOOK_SECRET", secret)
    with pytest.raises(InvalidSetting, match=r"WHISPER_WEBHOOK_SECRET: .*openssl rand") as error:
        load_settings()
    assert len(secret) < 5 or secret not in str(error.value).replace("whsec_ before", "")
    assert "\n" not in str(error.value)


def test_the_settings_do_not_show_the_secret() -> None:
    assert KEY not in repr(load_settings(webhook_secret=KEY))


def test_urls_need_yt_dlp(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings(allow_urls=True).allow_urls
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not load_settings().allow_urls
    with pytest.raises(InvalidSetting, match=r"WHISPER_ALLOW_URLS=True: .*whisperfleet\[url\]"):
        load_settings(allow_urls=True)


def test_no_webhook_secret_by_default() -> None:
    assert load_settings().webhook_secret is None
