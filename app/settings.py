"""Every setting of the service, read once from the environment (prefix `WHISPER_`) and `.env`."""

import base64
import importlib.util
import os
import re
from collections.abc import Mapping
from functools import cached_property
from ipaddress import ip_network
from pathlib import Path
from typing import Annotated, Any, Literal

from dotenv import dotenv_values
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    JsonValue,
    ValidationError,
    ValidationInfo,
    field_validator,
)
from pydantic_settings import (
    BaseSettings,
    DotEnvSettingsSource,
    EnvSettingsSource,
    NoDecode,
    PydanticBaseSettingsSource,
    SettingsConfigDict,
)

from app.common.errors import InvalidSetting, fault_of
from app.common.owners import KeyRing, parse_keys
from app.common.suggestions import nearest_name


def _split(value: Any) -> Any:
    if isinstance(value, str):
        return tuple(part.strip() for part in value.split(",") if part.strip())
    return value


CommaList = Annotated[tuple[str, ...], BeforeValidator(_split), NoDecode]

PREFIX = "WHISPER_"
ENV_FILE = ".env"
COMMANDS_KEY = "WHISPER_API_KEY"  # no setting: commands send it to a service

# An empty value counts as absent, except of these, whose defaults it switches off.
_MAY_BE_EMPTY = frozenset({"model_aliases"})

# How the service's own paths begin. Below one of them, it could not tell a root path from its own path.
OWN_PATHS = frozenset(
    [
        "asr",
        "detect-language",
        "docs",
        "health",
        "login",
        "metrics",
        "openapi.json",
        "ready",
        "status",
        "v1",
        "web",
    ]
)

_ROOT_PATH = re.compile(r"(/[A-Za-z0-9_-][A-Za-z0-9_.-]*)+")
_FRONT_END = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,59}")  # also the name of a file
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_HOST_PATTERN = re.compile(r"\*|(\*?\.)?[^\s/:@*.\[\]]+(\.[^\s/:@*.\[\]]+)*\.?(:\d+)?")


def _data_dir() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local/share") / "whisperfleet"


def _computed(default: str) -> dict[str, JsonValue]:
    """What the table of the settings shows as a default that depends on the machine."""
    return {"default": default}


def _check_hosts(hosts: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(_host_name(host) for host in hosts)


def _host_name(text: str) -> str:
    """A host name or pattern as browsers send names: in lower case and ASCII, here without the port.

    Raises ValueError if it is neither.
    """
    if not _HOST_PATTERN.fullmatch(text):
        raise ValueError(
            f"{text!r} is no host name; list names such as whisper.example.org or *.example.org "
            "(IP addresses are always allowed)"
        )
    name = text.partition(":")[0].removesuffix(".").lower()
    return name if name.isascii() else name.encode("idna").decode()


def _check_ray_address(value: str) -> str:
    address = value.strip()
    host, _, port = address.rpartition(":")
    is_address = host and "/" not in host and port.isdecimal() and 0 < int(port) <= 65535
    if address and not is_address:
        raise ValueError("write HOST:PORT of the cluster's head, such as 10.0.0.11:6379")
    return address


def _check_wyoming_port(value: str, others: ValidationInfo) -> str:
    _, port = _host_and_port(value)
    if port and port == others.data.get("port"):
        raise ValueError("this is WHISPER_PORT, for HTTP; choose another one, such as 10300")
    return value


def _host_and_port(value: str) -> tuple[str, int]:
    """The address that `[HOST:]PORT` names, on loopback unless it names a host. Raises ValueError."""
    host, separator, port = value.strip().rpartition(":")
    host = host.removeprefix("[").removesuffix("]") if host.startswith("[") else host
    if bool(separator) != bool(host) or not (port.isascii() and port.isdecimal()) or int(port) > 65535:
        raise ValueError("write PORT or HOST:PORT, such as 10300, 0.0.0.0:10300 or [::]:10300")
    return host or "127.0.0.1", int(port)


def _check_front_end(name: str) -> str:
    if not _FRONT_END.fullmatch(name):
        raise ValueError("give a name such as gpu-box-1: at most 60 letters, digits, '.', '_' and '-'")
    return name


def _check_root_path(value: str) -> str:
    path = value.removesuffix("/")
    if not path:
        return ""
    if not _ROOT_PATH.fullmatch(path):
        raise ValueError("give a path such as /whisper")
    if path.split("/")[1] in OWN_PATHS:
        raise ValueError("the service has paths of its own there; choose another path, such as /whisper")
    return path


def _check_proxies(proxies: tuple[str, ...]) -> tuple[str, ...]:
    for proxy in proxies:
        try:
            ip_network(proxy)
        except ValueError as error:
            raise ValueError(f"{error}; give addresses or networks, as 10.0.0.7 or 10.0.0.0/8") from None
    return proxies


def _check_keys(entries: tuple[str, ...]) -> tuple[str, ...]:
    parse_keys(entries)
    return entries


def _check_metrics_key(key: str | None) -> str | None:
    if key is not None:
        parse_keys((f"metrics:{key}",))
    return key


def _check_header(name: str | None) -> str | None:
    if name is not None and not _HEADER_NAME.fullmatch(name):
        raise ValueError("this is no name of a header; give one such as X-Forwarded-User or Remote-User")
    return name


def _check_yt_dlp(allow_urls: bool) -> bool:
    if allow_urls and importlib.util.find_spec("yt_dlp") is None:
        raise ValueError("yt-dlp is missing; install it beside whisperfleet: pip install yt-dlp")
    return allow_urls


def _check_secret(secret: str) -> str:
    """Raise ValueError unless `secret` is one of Standard Webhooks: base64, with or without `whsec_`.

    The library itself ignores characters that are not base64. It would sign with another key than a strict
    receiver.
    """
    text = secret.removeprefix("whsec_").rstrip("=")
    try:
        key = base64.b64decode(text + "=" * (-len(text) % 4), validate=True)
    except ValueError:
        key = b""
    if not key:
        raise ValueError(
            "must be base64, with or without whsec_ before it; generate one: openssl rand -base64 32"
        )
    return secret


class _EmptyEnv(EnvSettingsSource):
    """The variables of the environment that may be empty."""

    def __call__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__call__().items() if name in _MAY_BE_EMPTY}


class _EmptyDotEnv(_EmptyEnv, DotEnvSettingsSource):
    """The variables of `.env` that may be empty."""


class Settings(BaseSettings):
    """The settings, read by `load_settings`. Secret ones have `repr=False` (see `SECRET_SETTINGS`).

    Descriptions are in Markdown: `python -m tests.tables` writes the table of docs/settings.md from them.
    """

    model_config = SettingsConfigDict(
        env_prefix=PREFIX, env_file=ENV_FILE, env_ignore_empty=True, extra="ignore", frozen=True
    )

    model: str = Field(
        "auto",
        description="Size (`tiny` … `large-v3-turbo`), Hugging Face id, folder in CTranslate2 format, or "
        "`demo`. `auto`: `large-v3-turbo` on a GPU, `small` on a CPU.",
    )
    demo_fallback: bool = Field(
        False,
        description="If the model of `auto` is not available, use the bundled demo model. A named model is "
        "never replaced. `make run` sets it.",
    )
    models: CommaList = Field(
        (), description="Comma-separated: more models that requests may name, loaded on first use."
    )
    model_aliases: CommaList = Field(
        (
            *("gpt-4o-transcribe", "gpt-4o-mini-transcribe", "gpt-4o-transcribe-diarize"),
            *("gpt-transcribe", "gpt-live-transcribe", "gpt-realtime-whisper"),
        ),
        description="Comma-separated: further names of models, for clients that cannot choose: `alias`, "
        "which means the default model as `whisper-1` does, or `alias=model`. An empty value: "
        "no aliases.",
    )
    model_idle_s: float = Field(
        600,
        gt=0,
        description="A model of `WHISPER_MODELS` is unloaded after this idle time (s), or if memory runs "
        "out.",
    )
    keep_default_model: bool = Field(
        True,
        description="`false`: a worker that has had no work for `WHISPER_MODEL_IDLE_S` ends, and returns "
        "all of its memory. The next request starts it again.",
    )
    speaker_model: str = Field(
        "",
        description="Model that embeds voices, for `diarize`: an ONNX file of WeSpeaker, 3D-Speaker or "
        "TitaNet, or one on Hugging Face, as `OWNER/REPOSITORY` or `OWNER/REPOSITORY/FILE.onnx`. If absent, "
        "the weights of the package resemblyzer.",
    )
    terms: Path | None = Field(
        None,
        description="JSON file with names and terms for all owners, as `GET /v1/terms` gives them: how they "
        "should be written, and what is written today. An owner's own list comes first.",
    )
    device: Literal["auto", "cuda", "cpu"] = Field(
        "auto", description="`cuda`, `cpu`; `auto` is `cuda` if there is a GPU."
    )
    backend: Literal["auto", "torch", "ctranslate2"] = Field(
        "auto",
        description="What computes the model: `ctranslate2`, or `torch`, which is for GPUs. `auto` is "
        "`torch` on an H100 or H200 with a build of torch for CUDA, else `ctranslate2`.",
    )
    compute_type: str = Field(
        "auto",
        description="Type of CTranslate2; `auto` is float16 on a GPU and int8 on a CPU. The backend `torch` "
        "has `float32`, and on a GPU `float16`.",
    )
    gpus: CommaList = Field(
        ("all",),
        description="Indices, UUIDs, MIG ids; an entry twice means two workers on this GPU; a GPU with MIG "
        "enabled stands for all of its instances. With device `cpu`, one worker for each entry.",
    )
    cpu_workers: int | None = Field(
        None,
        ge=1,
        le=256,
        description="Number of workers with device `cpu`; the default is at most one for each core.",
        json_schema_extra=_computed("cores / 4, at least 2"),
    )
    cpu_threads: int | None = Field(
        None,
        ge=1,
        le=256,
        description="Threads of each worker. On a GPU they decode parts of a batch: see "
        "[Threads](tuning.md#threads).",
        json_schema_extra=_computed("cores / workers (GPU: 4 to 8)"),
    )
    media_workers: int | None = Field(
        None,
        ge=1,
        le=256,
        description="Processes that decode recordings and detect speech, each about 100 MB while there is "
        "work, and 350 MB once it has embedded voices for `diarize`. By default no more than the cores left "
        "when each worker on a GPU has one, and on a CPU at most one for each core.",
        json_schema_extra=_computed("2 for each worker on a GPU, at least 4 (CPU: 4)"),
    )
    batch_size: int | None = Field(
        None,
        ge=1,
        le=128,
        description="Maximum number of windows (of up to 30 s) in a batch.",
        json_schema_extra=_computed("8 (CPU: 4)"),
    )
    batch_timeout_s: float | None = Field(
        None,
        gt=0,
        description="Time after which a batch counts as hung and its worker is replaced (s).",
        json_schema_extra=_computed("50 times as long as the worker takes with that model, at least 60"),
    )
    audio_context: Literal["full", "auto"] = Field(
        "full",
        description="`full`: the encoder sees 30 s with every window; `auto`: less with windows of up to 19 "
        "s, which is faster; models that were not trained for it may lose or repeat words. See "
        "*Many short recordings* below.",
    )
    safe_mode: bool = Field(
        False,
        description="One clip at a time (ignores `WHISPER_BATCH_SIZE`), one model per worker, int8_float16 "
        "or int8 unless `WHISPER_COMPUTE_TYPE` names a type.",
    )
    processes: int = Field(
        1,
        ge=1,
        le=64,
        description="Number of server processes, which divide the workers among them; a single one feeds "
        "GPUs of 5,000 times real time. See *Several server processes* below.",
    )
    front_end: Annotated[str, AfterValidator(_check_front_end)] | None = Field(
        None,
        description="Name of this service among those that share its database: each needs one of its own. "
        "Of several processes, each has this name, `-` and its number.",
        json_schema_extra=_computed("none: no other may use the database. Several processes: the host name"),
    )
    engine: Literal["local", "ray", "inline", "simulated"] = Field(
        "local",
        description="`local`: a process per worker; `ray`: the same on every node of a Ray cluster; "
        "`inline`: the model in the server's own process, on the first GPU that it sees, for debugging; "
        "`simulated`: no model, made-up transcripts of the detected speech.",
    )
    ray_address: Annotated[str, AfterValidator(_check_ray_address)] = Field(
        "",
        description="`HOST:PORT` of the Ray cluster's head, of which this machine is a node; empty: a Ray on "
        "this machine alone, which the service starts and ends.",
    )
    ray_gpus_per_worker: float = Field(
        1.0, gt=0, le=1, description="Part of a GPU that each worker on the cluster takes."
    )
    ray_media_workers: int = Field(
        0, ge=0, le=1024, description="Media workers on CPUs of the cluster, besides those of this machine."
    )
    ray_insecure: bool = Field(
        False,
        description="Use a Ray cluster without token authentication: whoever reaches its ports can run any "
        "program on its nodes.",
    )
    simulated: str = Field(
        "",
        description="How the workers of the engine `simulated` behave: `fixed_ms=10,clip_ms=50,…`. See "
        "*Simulated workers* below.",
    )
    host: str = Field(
        "127.0.0.1",
        description="Address to listen on; 0.0.0.0 opens the service to the network: set keys first.",
    )
    port: int = Field(8000, ge=0, le=65535, description="Port to listen on; 0 picks a free one.")
    root_path: Annotated[str, AfterValidator(_check_root_path)] = Field(
        "", description="Path below which a proxy publishes the service, such as `/whisper`."
    )
    trusted_proxies: Annotated[CommaList, AfterValidator(_check_proxies)] = Field(
        ("127.0.0.1", "::1"),
        description="Addresses or networks of proxies whose X-Forwarded-For, X-Forwarded-Proto and "
        "`WHISPER_TRUSTED_USER_HEADER` count.",
    )
    api_keys: Annotated[CommaList, AfterValidator(_check_keys)] = Field(
        (),
        repr=False,
        description="Comma-separated `KEY`, `NAME:KEY` or `NAME:KEY:operator`; if set, every request needs "
        "`Authorization: Bearer KEY`, or is a link. A name sees its own jobs alone; operators see all, and "
        "so does a key without a name.",
    )
    api_keys_file: Path | None = Field(
        None,
        description="File with more such entries, one in each line. SIGHUP makes the service read it again.",
    )
    budgets_file: Path | None = Field(
        None,
        description="File with budgets, an `OWNER:MINUTES` in each line: how much audio an owner may have "
        "transcribed in a month (of UTC). `*` stands for all others, `unlimited` for no limit. SIGHUP makes "
        "the service read it again.",
    )
    metrics_key: Annotated[str | None, AfterValidator(_check_metrics_key)] = Field(
        None,
        repr=False,
        description="Key for `/metrics` alone, beside those of operators; without any, no key is asked for.",
    )
    metrics_by_owner: bool = Field(
        False, description="`/metrics` says who has had how much audio transcribed in this month."
    )
    trusted_user_header: Annotated[str | None, AfterValidator(_check_header)] = Field(
        None,
        description="Header in which a login proxy names the user, such as `X-Forwarded-User`; the user owns "
        "jobs as a name of a key does. It counts from `WHISPER_TRUSTED_PROXIES` only.",
    )
    operators: CommaList = Field(
        (), description="Comma-separated: users by `WHISPER_TRUSTED_USER_HEADER` who are operators."
    )
    public_docs: bool = Field(False, description="`/docs` and `/openapi.json` need no key.")
    cors_origins: CommaList = Field(
        (), description="Comma-separated origins of web pages that may call the service; `*`: all."
    )
    allowed_hosts: Annotated[CommaList, AfterValidator(_check_hosts)] = Field(
        (),
        description="Without keys, or with a login proxy: comma-separated host names under which clients may "
        "call the service, "
        "besides IP addresses, names without a dot, `*.localhost` and `WHISPER_HOST`; others "
        "get 421. `.example.org`: that name and all below it, `*.example.org`: only those below "
        "it, `*`: all.",
    )
    max_upload_mb: int = Field(4096, ge=1, description="Larger uploads get 413 (MB of 10⁶ bytes).")
    max_queued_jobs: int = Field(
        1000,
        ge=1,
        description="Maximum number of waiting jobs, and of other requests; further ones get 429 before "
        "they are uploaded, and can be retried later. API keys that are in use at the same time share "
        "them.",
    )
    max_jobs_per_key: int | None = Field(
        None, ge=1, description="Maximum number of unfinished jobs of one API key; further ones get 429."
    )
    max_uploads: int = Field(
        100,
        ge=1,
        description="Maximum number of uploads that are received at the same time; further ones get 429. "
        "API keys that are in use at the same time share it. Ten times as many resumable uploads may be "
        "incomplete or have no job yet. As many spans, archives and transcripts of over 256 KiB "
        "are sent at the same time.",
    )
    max_event_streams: int = Field(
        1000,
        ge=1,
        description="Maximum number of open event streams; further ones get 429. API keys that are in "
        "use at the same time share it. As many recordings are sent at the same time.",
    )
    max_streams: int = Field(
        100,
        ge=1,
        description="Maximum number of open live streams; further ones get 429. API keys that are in use at "
        "the same time share it. As many clients of Wyoming are connected at the same time.",
    )
    wyoming_port: Annotated[str, AfterValidator(_check_wyoming_port)] | None = Field(
        None,
        description="`[HOST:]PORT` for Home Assistant's protocol Wyoming, such as `10300`; without a host, "
        "this machine alone reaches it. It knows no keys: who reaches it may have speech transcribed.",
    )
    max_connections: int | None = Field(
        None,
        ge=1,
        description="Maximum number of open connections. Further ones take the place of those that wait for "
        "a request, or get 503. The hard limit of open files (`ulimit -Hn`) must be twice as high, and 256 "
        "more.",
        json_schema_extra=_computed("4096, fewer if the hard limit is lower"),
    )
    header_timeout_s: float = Field(
        30,
        gt=0,
        description="A connection closes if the headers of a request are not complete after this time (s).",
    )
    max_running_jobs_per_key: int | None = Field(
        None,
        ge=1,
        description="While jobs of others wait, long running jobs of one API key above this number give way "
        "to them, and go on later.",
        json_schema_extra=_computed("half of those that run at once"),
    )
    upload_stall_s: float = Field(
        60,
        gt=0,
        description="An upload that stalls for this time fails (s), and so does one that takes over a day.",
    )
    send_timeout_s: float = Field(
        60,
        gt=0,
        description="A connection is closed if its client takes less than 64 KiB of a response in this time "
        "(s). Recordings that are kept on disk have 15 times as long, since players pause.",
    )
    max_duration_s: float = Field(
        86400, gt=0, description="Longer recordings get 413 (s); a large number stands for no limit."
    )
    allow_urls: Annotated[bool, AfterValidator(_check_yt_dlp)] = Field(
        False,
        description="Jobs may name a URL instead of a file. Needs yt-dlp: `.venv/bin/python -m pip "
        "install yt-dlp`, or `make run EXTRAS=url`; the images have it. Only public addresses, without a "
        "proxy.",
    )
    webhook_secret: Annotated[str, AfterValidator(_check_secret)] | None = Field(
        None,
        repr=False,
        description="Key that signs webhooks (base64, `whsec_…`); without it, jobs cannot have a "
        "`webhook_url`.",
    )
    webhook_allow_private: bool = Field(False, description="Webhooks may also go to private addresses.")
    data_dir: Path = Field(
        default_factory=_data_dir,
        description="Folder for jobs with their recordings and copies of them, the database, decoded audio "
        "during transcription, and code that the driver compiled for the GPUs (unless "
        "`CUDA_CACHE_PATH` names another folder); one service per folder, or several with names.",
        json_schema_extra=_computed("`~/.local/share/whisperfleet`"),
    )
    database_url: str | None = Field(
        None,
        repr=False,
        description="Database of the jobs: `postgresql://user:password@host/database`, or "
        "`sqlite:////path/to/file.db`.",
        json_schema_extra=_computed("SQLite in the data folder"),
    )
    result_ttl_s: float = Field(
        7 * 86400,
        gt=0,
        description="A finished job is deleted after this time, with its result and its recording (s); one "
        "that people corrected as `WHISPER_KEEP_CORRECTED` says.",
    )
    keep_corrected: bool = Field(
        True,
        description="Only people delete a job whose transcript people corrected; `WHISPER_RESULT_TTL_S` "
        "after the last correction, its recording and the voices in it go. false: all of it goes then.",
    )
    trash_ttl_s: float = Field(
        7 * 86400,
        ge=0,
        description="A job in the trash, *Recently deleted* on the page, is deleted after this time (s), "
        "counted from when it was put there. 0: there is no trash.",
    )
    keep_audio: bool = Field(
        True,
        description="Keep a job's recording for `WHISPER_RESULT_TTL_S`; false: only until the job is done.",
    )
    owner_storage_mb: int | None = Field(
        None,
        ge=1,
        description="The jobs and uploads of one owner may not hold more (MB of 10⁶ bytes): 507. Where there "
        "can be others, it may hold no more than three times what stays free for them either.",
    )
    audio_cache_mb: int = Field(
        2048,
        ge=0,
        description="Size of the FLAC and Ogg copies of recordings, and of spans, that are kept for further "
        "requests (MB of 10⁶ bytes); the least recently used one goes first. 0: none is kept once "
        "it is sent.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="Lowest level that is logged: `debug`, `info`, `warning` or `error`."
    )
    log_format: Literal["console", "json"] = Field(
        "console", description="Format of log lines: `console` or `json`."
    )

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        assert isinstance(dotenv_settings, DotEnvSettingsSource)
        return (
            init_settings,
            _EmptyEnv(settings_cls, env_ignore_empty=False),
            env_settings,
            _EmptyDotEnv(settings_cls, env_file=dotenv_settings.env_file, env_ignore_empty=False),
            dotenv_settings,
            file_secret_settings,
        )

    @field_validator("backend", "device", "engine", "log_level", "log_format", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @cached_property
    def needs_key(self) -> bool:
        """Whether requests must say whose they are: by a key, or by the header of a login proxy."""
        return bool(self.api_keys or self.api_keys_file or self.trusted_user_header)

    @cached_property
    def wyoming_address(self) -> tuple[str, int] | None:
        """Host and port for Wyoming; None: it is off."""
        return None if self.wyoming_port is None else _host_and_port(self.wyoming_port)

    @cached_property
    def max_upload_bytes(self) -> int:
        return self.max_upload_mb * 10**6

    @cached_property
    def audio_cache_bytes(self) -> int:
        return self.audio_cache_mb * 10**6


# No log and no error repeats the values of these.
SECRET_SETTINGS = frozenset(name for name, field in Settings.model_fields.items() if not field.repr)


def load_settings(**overrides: Any) -> Settings:
    """Read settings from the environment and `.env`; `overrides` (by field name) take precedence.

    Raises InvalidSetting. Its message is one line that names each invalid variable.
    """
    try:
        return Settings(**overrides)
    except ValidationError as error:
        faults = "; ".join(f"{_shown(problem)}: {fault_of(problem)}" for problem in error.errors())
        raise InvalidSetting(faults) from None


def _shown(problem: Mapping[str, Any]) -> str:
    """The variable of an invalid setting, and its value unless that is a secret."""
    field = problem["loc"][0]
    value = "" if field in SECRET_SETTINGS else f"={problem['input']!r}"
    return f"{PREFIX}{str(field).upper()}{value}"


def key_ring(settings: Settings) -> KeyRing:
    """The keys of the settings. Raises InvalidSetting if the file cannot be read, or has a wrong entry."""
    try:
        return KeyRing(settings.api_keys, settings.api_keys_file)
    except (OSError, ValueError) as error:
        raise InvalidSetting(f"WHISPER_API_KEYS_FILE={settings.api_keys_file}: {error}") from None


def unknown_variables(environ: Mapping[str, str]) -> list[str]:
    """A sentence for each variable of `environ` that looks like a setting and is none, with the nearest one.

    Those of `.env` come after them.
    """
    known = {f"{PREFIX}{name.upper()}" for name in Settings.model_fields} | {COMMANDS_KEY}
    named = [*sorted(environ), *dotenv_values(ENV_FILE)]
    unknown = [name for name in named if name.upper().startswith(PREFIX) and name.upper() not in known]
    nearest = {name: nearest_name(name, known) for name in unknown}
    return [
        f"{name} is not a setting{f'; did you mean {near}?' if near else '.'}"
        for name, near in nearest.items()
    ]
