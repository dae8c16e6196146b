"""What the page says of the service's errors, in each of its languages."""

import re
from pathlib import Path

import pytest

from app.common.errors import Interrupted
from app.recording.recording_work import failure_code
from app.server.errors import KINDS

ROOT = Path(__file__).parents[2]
TEXTS = sorted((ROOT / "app" / "web" / "texts").glob("*.js"))
# The page sends no request that these answer, or acts by itself.
OF_PROGRAMS = {
    *("ambiguous_node", "node_not_found", "origin_not_allowed", "host_not_allowed", "link_refused"),
    *("idempotency_key_reused", "if_match_required", "unsupported_content_type", "unsupported_tus_version"),
    *("upload_conflict", "upload_expired", "upload_not_found", "upload_offset_mismatch", "upload_taken_over"),
    *("upload_too_long", "upload_used", "webhooks_not_configured", "no_keys"),
    *("no_trash", "has_parent"),
    # The page opens another stream, or sends nothing of the kind.
    *("event_not_kept", "invalid_json", "invalid_value", "job_deleted", "service_stopping", "stream_ended"),
    *("input_audio_buffer_commit_empty", "input_audio_buffer_full", "stream_refused"),
    *("stream_too_long", "too_many_errors", "unknown_subprotocol", "unsupported"),
}
# Words of programs and protocols, which mean nothing to someone who only wants a text.
JARGON = re.compile(
    r"\b(API|URLs?|HTTPS?|headers?|requests?|jobs?|status|token|log|process)\b", re.IGNORECASE
)


def codes_of_the_service() -> set[str]:
    sources = [path.read_text("utf-8") for path in (ROOT / "app").rglob("*.py")]
    raised = {
        code for source in sources for code in re.findall(r'code(?:: str \| None)? ?= ?"([a-z_]+)"', source)
    }
    refusal = (ROOT / "workers" / "media" / "refusal.py").read_text("utf-8")
    refused = set(re.findall(r'RecordingRefused\(\s*"([a-z_]+)"', refusal))
    of_clips = {failure_code(error) for error in (Interrupted(""), ValueError())}
    return raised | refused | of_clips | {kind.code for kind in KINDS.values() if kind.code is not None}


@pytest.mark.parametrize("texts", TEXTS, ids=lambda path: path.stem)
def test_every_error_that_the_page_meets_has_a_text(texts: Path) -> None:
    [known] = re.findall(r'"error\.known": \{(.*?)\n  \}', texts.read_text("utf-8"), re.DOTALL)
    codes = set(re.findall(r"^    (\w+):", known, re.MULTILINE))
    assert codes == codes_of_the_service() - OF_PROGRAMS


def test_texts_have_no_words_of_programmers() -> None:
    source = (ROOT / "app" / "web" / "texts" / "en.js").read_text("utf-8")
    values = re.findall(r'"((?:[^"\\]|\\.)*)",?(?= [}]|\n)', source)
    assert len(values) > 400
    assert [value for value in values if JARGON.search(re.sub(r"https?://|\{\w+\}", "", value))] == []


@pytest.mark.parametrize("texts", TEXTS, ids=lambda path: path.stem)
def test_splitting_a_segment_and_sharing_a_transcript_have_different_names(texts: Path) -> None:
    """German has one word for both."""
    source = texts.read_text("utf-8")
    split, share = (re.search(rf'"{key}": "(.+)"', source) for key in ("edit.split", "share.open"))
    assert split
    assert share
    assert split[1] != share[1]
