"""A public generator makes a typed client from `/openapi.json`, and it works."""

import importlib
import subprocess
import sys

import pytest

pytestmark = pytest.mark.timeout(120)


@pytest.fixture(scope="module")
def generated(server, tmp_path_factory):
    """The package that openapi-python-client makes."""
    folder = tmp_path_factory.mktemp("generated")
    (folder / "openapi.json").write_bytes(server.client.get("/openapi.json").content)
    command = "generate --path openapi.json --output-path fleet_client --meta none"
    done = subprocess.run(
        [sys.executable, "-m", "openapi_python_client", *command.split()],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
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
        body = models.CreateTranscriptionTranscriptionForm(
            file=types.File(payload=content, file_name="short.flac"),
            model="whisper-1",
            response_format=models.CreateTranscriptionTranscriptionFormResponseFormat.VERBOSE_JSON,
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
