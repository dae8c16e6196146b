"""What people corrected outlives its time, over HTTP; what the service made alone does not."""

import sqlite3
from contextlib import closing

from app.database.connection import FILE_NAME
from tests.api.test_job_corrections import FIRST, save
from tests.api.waiting import wait_for

DAY_S = 86400


def age(site, which):
    """Begin the retention of some jobs a week and a day earlier."""
    with closing(sqlite3.connect(site.service.settings.data_dir / FILE_NAME)) as database, database:
        database.execute(f"UPDATE jobs SET retained_since = retained_since - {8 * DAY_S} WHERE {which}")


def test_a_corrected_transcript_stays_after_a_week_and_its_recording_after_the_correction(
    serve, tmp_path, monkeypatch
):
    monkeypatch.setattr("app.jobs.service._SWEEP_S", 0.05)
    site = serve(data_dir=tmp_path)
    job, plain = [site.finished(site.submitted())["id"] for _ in range(2)]  # the first is looked at first
    save(site, job, FIRST, " Over it.")
    age(site, "corrected_at IS NULL")
    wait_for(lambda: site.client.get(f"/v1/jobs/{plain}").status_code == 404)
    assert site.job(job)["expires_at"] is None
    assert site.job(job)["audio_expires_at"] > site.job(job)["finished_at"]
    assert site.client.get(f"/v1/jobs/{job}/audio").status_code == 200

    age(site, "corrected_at IS NOT NULL")
    wait_for(lambda: site.client.get(f"/v1/jobs/{job}/audio").status_code == 404)
    gone = site.client.get(f"/v1/jobs/{job}/audio").json()["error"]
    assert gone["code"] == "audio_not_kept"
    assert "WHISPER_RESULT_TTL_S" in gone["message"]
    assert site.client.get(f"/v1/jobs/{job}/audio?format=ogg").status_code == 409
    assert site.job(job)["audio_expires_at"] is None
    assert "Over it." in site.client.get(f"/v1/jobs/{job}/result?format=srt").text
    wait_for(lambda: not site.left_files)
