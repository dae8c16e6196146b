"""A public generator makes a typed client from `/openapi.json`, and it works."""

import importlib
import subprocess
import sys

import pytest

from tests.e2e.documentation import section
from tests.e2e.running import wait_for

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def generated(server, tmp_path_factory):
    """The package that openapi-python-client makes."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_bytes(server.client.get("/openapi.json").content)
    [config] = section("docs/clients.md", "Generated clients", ("yaml",))
    (folder / "config.yaml").write_text(config.text)
    command = "generate --path openapi.json --config config.yaml --output-path fleet_client --meta none"
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *command.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Endpoint will not be generated" not in done.stdout + done.stderr
    sys.path.insert(0, str(folder))
    try:
        yield importlib.import_module("fleet_client")
    finally:
        sys.path.remove(str(folder))


def test_it_uploads_a_file_and_reads_the_typed_answer(generated, server, shorts):
    models = importlib.import_module("fleet_client.models")
    types = importlib.import_module("fleet_client.types")
    create = importlib.import_module("fleet_client.api.audio.create_transcription")
    client = generated.Client(base_url=server.url, timeout=60)
    with shorts[0].open("rb") as content:
        body = models.TranscriptionForm(
            file=types.File(payload=content, file_name="short.flac"),
            model="whisper-1",
            response_format=models.TranscriptionFormResponseFormat.VERBOSE_JSON,
        )
        answer = create.sync(client=client, body=body)
    assert isinstance(answer, models.VerboseTranscription)
    assert answer.language == "english"
    assert answer.text == server.text(shorts[0]).strip()
    assert answer.segments[0].end > answer.segments[0].start


def test_it_reads_lists_and_errors(generated, server):
    models = importlib.import_module("fleet_client.models")
    client = generated.Client(base_url=server.url, timeout=60)
    listed = importlib.import_module("fleet_client.api.models.list_models").sync(client=client)
    assert listed.data[0].id == "demo"
    workers = importlib.import_module("fleet_client.api.service.list_workers").sync(client=client)
    assert [worker.slot for worker in workers.data] == [0, 1]
    retrieve = importlib.import_module("fleet_client.api.models.retrieve_model")
    assert isinstance(retrieve.sync("unknown", client=client), models.Error)


def test_it_submits_jobs_of_all_kinds_and_reads_what_they_give(generated, server, shorts):
    models = importlib.import_module("fleet_client.models")
    types = importlib.import_module("fleet_client.types")
    jobs = {
        name: importlib.import_module(f"fleet_client.api.jobs.{name}")
        for name in ("create_job", "follow_job", "retrieve_job", "retrieve_result", "retrieve_segments")
    }
    create_upload = importlib.import_module("fleet_client.api.uploads.create_upload")
    client = generated.Client(base_url=server.url, timeout=60)

    def submitted(body):
        return jobs["create_job"].sync(client=client, body=body)

    content = shorts[0].read_bytes()
    of_form = submitted(models.JobForm(file=types.File(payload=content, file_name="short.flac"), tags=["a"]))
    version = models.CreateUploadTusResumable("1.0.0")
    begun = create_upload.sync_detailed(
        client=client,
        body=types.File(payload=content),
        tus_resumable=version,
        upload_length=len(content),
    )
    assert begun.status_code == 201
    upload = begun.headers["location"].rsplit("/", 1)[-1]
    of_upload = submitted(models.JobFromUpload(upload=upload, filename="short.flac", word_timestamps=True))
    refused = submitted(models.JobFromUrl(url="https://media.example/talk.mp3"))
    assert isinstance(refused, models.Error)
    assert refused.error.code == "urls_not_allowed"
    for job in (of_form, of_upload):
        assert job.filename == "short.flac"
        events = jobs["follow_job"].sync(job.id, client=client)  # until the job is done
        assert "event: job.succeeded" in events
        wait_for(lambda job=job: jobs["retrieve_job"].sync(job.id, client=client).status == "succeeded")
        segments = jobs["retrieve_segments"].sync(job.id, client=client)
        assert segments.segments[0].text.strip() in server.text(shorts[0])
    assert of_upload.options.word_timestamps
    for form in models.RetrieveResultFormat:
        result = jobs["retrieve_result"].sync_detailed(of_form.id, client=client, format_=form)
        stored = server.client.get(f"/v1/jobs/{of_form.id}/result", params={"format": form.value})
        assert (result.status_code, result.content) == (200, stored.content), form
