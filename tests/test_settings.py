"""Invalid settings, and secret ones."""

import base64
import importlib.util
from contextlib import nullcontext
from pathlib import Path

import pytest
from standardwebhooks import Webhook

from app.common.errors import InvalidSetting
from app.server.listening import check_key_of_commands
from app.settings import SECRET_SETTINGS, load_settings, unknown_variables

KEY = base64.b64encode(bytes(range(200, 232))).decode()


@pytest.fixture(autouse=True)
def _no_env_file(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.chdir(str(tmp_path))


@pytest.mark.parametrize("secret", [KEY, f"whsec_{KEY}", KEY.rstrip("="), "whsec_AAAA", "AAA"])
def test_valid_webhook_secrets(secret: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WHISPER_WEBHOOK_SECRET", secret)
    assert load_settings().webhook_secret == secret
    Webhook(secret)


@pytest.mark.parametrize(
    "secret", ["s3cret!", "hunter2!", "A", "=", "whsec_", "p_ss-word", "pässword", "AAAA AAAA"]
)
def test_an_invalid_webhook_secret_is_refused_and_not_repeated(
    secret: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHISPER_WEBHOOK_SECRET", secret)
    with pytest.raises(InvalidSetting, match=r"WHISPER_WEBHOOK_SECRET: .*openssl rand") as error:
        load_settings()
    assert len(secret) < 5 or secret not in str(error.value).replace("whsec_ before", "")
    assert "\n" not in str(error.value)


def test_four_settings_are_secret() -> None:
    assert {"api_keys", "database_url", "metrics_key", "webhook_secret"} == SECRET_SETTINGS


@pytest.mark.parametrize("name", sorted(SECRET_SETTINGS))
def test_the_settings_do_not_show_secrets(name: str) -> None:
    assert KEY not in repr(load_settings(**{name: KEY}))


@pytest.mark.parametrize("name", sorted(SECRET_SETTINGS))
def test_an_invalid_secret_is_not_repeated(name: str) -> None:
    with pytest.raises(InvalidSetting, match=f"WHISPER_{name.upper()}: ") as error:
        load_settings(**{name: {"secret": "hunter2"}})
    assert "hunter2" not in str(error.value)


def test_a_recording_may_last_a_day_unless_a_larger_number_is_set() -> None:
    assert load_settings().max_duration_s == 86400
    assert load_settings(max_duration_s="1e12").max_duration_s == 1e12
    with pytest.raises(InvalidSetting, match="WHISPER_MAX_DURATION_S"):
        load_settings(max_duration_s=0)


@pytest.mark.parametrize(
    "address", ["auto", "head", "head:", ":6379", "head:0", "head:65536", "ray://head:10001"]
)
def test_an_address_of_a_cluster_is_a_host_and_a_port(address: str) -> None:
    with pytest.raises(InvalidSetting, match=f"WHISPER_RAY_ADDRESS='{address}': .*write HOST:PORT"):
        load_settings(ray_address=address)
    assert load_settings(ray_address=" [::1]:6379 ").ray_address == "[::1]:6379"


def test_urls_need_yt_dlp(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings(allow_urls=True).allow_urls
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    assert not load_settings().allow_urls
    with pytest.raises(InvalidSetting, match=r"_ALLOW_URLS=True: yt-dlp is missing; .*pip install yt-dlp"):
        load_settings(allow_urls=True)


def test_an_empty_list_of_aliases_switches_the_usual_ones_off(monkeypatch: pytest.MonkeyPatch) -> None:
    usual = (
        *("gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-4o-transcribe-diarize"),
        *("gpt-transcribe", "gpt-live-transcribe", "gpt-realtime-whisper"),
    )
    assert load_settings().model_aliases == usual
    Path(".env").write_text("WHISPER_MODEL_ALIASES=\nWHISPER_MODEL=\n")
    assert load_settings().model_aliases == ()
    assert load_settings(_env_file=None).model_aliases == usual
    monkeypatch.setenv("WHISPER_MODEL_ALIASES", "a, b=large-v3")
    assert load_settings().model_aliases == ("a", "b=large-v3")
    Path(".env").write_text("WHISPER_MODEL_ALIASES=c\nWHISPER_MODEL=demo\n")
    monkeypatch.setenv("WHISPER_MODEL_ALIASES", "")
    monkeypatch.setenv("WHISPER_MODEL", "")
    settings = load_settings()
    assert (settings.model_aliases, settings.model) == ((), "demo")  # any other empty value counts as absent


@pytest.mark.parametrize("value", ["short", "AUTO", "10"])
def test_an_unknown_audio_context_is_refused(value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().audio_context == "full"
    monkeypatch.setenv("WHISPER_AUDIO_CONTEXT", value)
    with pytest.raises(InvalidSetting, match=rf"WHISPER_AUDIO_CONTEXT='{value}': .*'full' or 'auto'"):
        load_settings()


def test_the_nearest_setting_is_named_for_variables_and_lines_of_the_file_that_are_none(
    tmp_path: Path,
) -> None:
    (tmp_path / ".env").write_text("WHISPER_GPU=0,1\nWHISPER_MODEL=small\nOTHER=1\n")
    assert unknown_variables({"WHISPER_ZZZZZZZ": "1", "WHISPER_API_KEY": "k", "whisper_port": "1"}) == [
        "WHISPER_ZZZZZZZ is not a setting.",
        "WHISPER_GPU is not a setting; did you mean WHISPER_GPUS?",
    ]


@pytest.mark.parametrize(
    ("settings", "refused"),
    [
        ({"host": "0.0.0.0"}, True),
        ({"host": "::"}, True),
        ({"host": "gpu-machine"}, True),
        ({"host": "127.0.0.1"}, False),
        ({"host": "localhost"}, False),
        ({"host": "0.0.0.0", "api_keys": "sk-1"}, False),
    ],
)
def test_a_key_for_commands_alone_is_not_taken_for_one_of_the_service(
    settings: dict[str, str], refused: bool
) -> None:
    with pytest.raises(InvalidSetting, match="WHISPER_API_KEYS") if refused else nullcontext():
        check_key_of_commands(load_settings(**settings), {"WHISPER_API_KEY": "sk-1"})
    check_key_of_commands(load_settings(**settings), {})


@pytest.mark.parametrize(
    ("value", "address"),
    [
        ("10300", ("127.0.0.1", 10300)),
        ("0.0.0.0:10300", ("0.0.0.0", 10300)),
        ("[::1]:10300", ("::1", 10300)),
        ("box.lan:0", ("box.lan", 0)),
        ("", None),
    ],
)
def test_wyoming_is_for_this_machine_unless_a_host_is_named(
    value: str, address: tuple[str, int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WHISPER_WYOMING_PORT", value)
    assert load_settings().wyoming_address == address


@pytest.mark.parametrize("value", ["box", ":10300", "70000", "-1", "box:", "tcp://box", "8000", "²"])
def test_an_address_for_wyoming_is_one(value: str) -> None:
    with pytest.raises(InvalidSetting, match=r"WHISPER_WYOMING_PORT=.* such as 10300"):
        load_settings(wyoming_port=value)
