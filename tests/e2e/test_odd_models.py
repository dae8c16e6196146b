"""Models whose files do not fit together, and models without word times, in the real service."""

import pytest

from tests.e2e.reading import read_srt, read_vtt, words
from tests.model_variants import copy_demo, with_alignment_heads, with_mel_bins

pytestmark = pytest.mark.timeout(120)


def test_a_second_model_whose_files_do_not_fit_fails_its_requests_only(commands, shorts, tmp_path):
    odd = copy_demo(tmp_path / "odd", with_mel_bins(128))
    server = commands.ready(WHISPER_MODELS=odd, WHISPER_GPUS="0")
    answer = server.post(shorts[0], model=str(odd))
    assert (answer.status_code, "files do not fit together" in answer.json()["error"]["message"]) == (
        500,
        True,
    )
    assert "docs/trouble.md#model-files-do-not-fit" in server.stderr
    assert words(server.text(shorts[0]))
    assert {row["restarts"] for row in server.workers()} == {0}


@pytest.mark.parametrize(
    "heads",
    [
        pytest.param(None, id="none", marks=pytest.mark.soak),
        pytest.param([[9, 9]], id="heads that do not exist"),
    ],
)
def test_a_model_without_alignment_heads_makes_subtitles_by_segment(
    commands, shorts, server, tmp_path, heads
):
    folder = copy_demo(tmp_path / "model", with_alignment_heads(heads))
    wordless = commands.ready(WHISPER_MODEL=folder, WHISPER_GPUS="0")
    recording = shorts[1]  # two sentences
    assert words(wordless.text(recording)) == words(server.text(recording))
    srt = read_srt(wordless.srt(recording))
    assert words(" ".join(cue.text for cue in srt)) == words(wordless.text(recording))
    assert read_vtt(wordless.text(recording, response_format="vtt"))
    verbose = wordless.post(
        recording,
        response_format="verbose_json",
        **{"timestamp_granularities[]": ["word", "segment"]},
    ).json()
    assert verbose["words"] == []
    assert verbose["segments"]
    job = wordless.submit(recording)
    assert wordless.finished(job["id"])["status"] == "succeeded"
    assert len(read_srt(wordless.result(job["id"]))) == len(srt)
    for row in wordless.workers():
        [note] = row["notes"]
        assert "no word times: " in note
        assert "docs/trouble.md#no-word-times" in note
        assert (row["error"], row["restarts"]) == (None, 0)
    assert wordless.stderr.count("transcripts are incomplete") == 1
    asr = wordless.client.post(
        "/asr",
        params={"output": "json", "word_timestamps": True},
        files={"audio_file": recording.read_bytes()},
    )
    assert {len(segment["words"]) for segment in asr.json()["segments"]} == {0}
