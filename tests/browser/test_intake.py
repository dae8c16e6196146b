"""New recordings: dropped, chosen, pasted and recorded, over bad connections and reloads."""

import json
import re
import time
import wave
from pathlib import Path

import pytest
from playwright.sync_api import expect

from tests.e2e.running import wait_for

CHUNK = 8_000_000
CUT = "Failed to load resource"  # what Chromium says about each request that a test breaks off
PART_SENT = re.compile(r"(?<![.\d])(8|9|1\d)(\.\d)? MB of 17 MB")
PARTS = "**/v1/uploads/*"


@pytest.fixture
def page(new_page, site):
    """In a context of its own: the requests of its uploads are counted."""
    return new_page(site)


@pytest.fixture(autouse=True)
def no_jobs(site):
    """Each test sees only its own jobs."""
    yield
    for job in all_jobs(site):
        site.client.delete(f"/v1/jobs/{job['id']}")


def all_jobs(site):
    return site.client.get("/v1/jobs", params={"limit": 100}).json()["data"]


def wait_for_jobs(page, site, count, done=False):
    """The jobs of the service, once there are so many, oldest first. `done`: and they have ended."""
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline:
        jobs = all_jobs(site)
        ended = [job for job in jobs if job["status"] in ("succeeded", "failed")]
        if len(jobs) >= count and (not done or len(ended) == len(jobs)):
            assert len(jobs) == count
            return jobs[::-1]
        page.wait_for_timeout(100)  # a plain sleep would also stop the routes of the test
    raise AssertionError([(job["filename"], job["status"], job["error"]) for job in all_jobs(site)])


def drop(page, *paths):
    """Drop files or folders as a user does, with the overlay in between."""
    session = page.context.new_cdp_session(page)
    data = {"items": [], "files": [str(path) for path in paths], "dragOperationsMask": 1}
    for kind in ("dragEnter", "dragOver"):
        session.send("Input.dispatchDragEvent", {"type": kind, "x": 200, "y": 300, "data": data})
    expect(page.get_by_text("Drop to transcribe")).to_be_visible()
    session.send("Input.dispatchDragEvent", {"type": "drop", "x": 200, "y": 300, "data": data})


def choose(page, *paths):
    page.locator("input[type=file]").first.set_input_files([str(path) for path in paths])


def row(page, name):
    return page.get_by_role("listitem").filter(has_text=name)


def sent_offsets(page):
    """Where each part begins that the page sends, as it sends them."""
    offsets = []

    def note(request):
        if request.method == "PATCH":
            offsets.append(int(request.headers["upload-offset"]))

    page.on("request", note)
    return offsets


def paste(page, text):
    page.evaluate(
        """(text) => {
            const clipboardData = new DataTransfer();
            clipboardData.setData("text/plain", text);
            const event = new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true });
            document.body.dispatchEvent(event);
        }""",
        text,
    )


def with_service_data(page, **changes):
    """Open the page of a service that says other things about itself."""

    def answer(route):
        response = route.fetch()
        body = response.text()
        for name, value in changes.items():
            body, count = re.subn(rf'"{name}": [^,}}]+', f'"{name}": {json.dumps(value)}', body)
            assert count == 1
        route.fulfill(response=response, body=body)

    page.route("/", answer)
    page.goto("/")


@pytest.fixture(scope="module")
def long_recording(tmp_path_factory):
    """17 MB: three parts of an upload. Silence, so that its transcription takes little time."""
    path = tmp_path_factory.mktemp("long") / "long talk.wav"
    with wave.open(str(path), "wb") as file:
        file.setparams((2, 2, 48_000, 0, "NONE", ""))
        file.writeframes(bytes(17_000_000))
    return path


def test_a_folder_gives_its_recordings_and_names_what_is_skipped(page, site, shorts, tmp_path):
    folder = tmp_path / "series" / "first part"
    folder.mkdir(parents=True)
    for number in range(5):
        (folder / f"{number}.flac").write_bytes(Path(shorts[number % len(shorts)]).read_bytes())
    for name in (".DS_Store", "0.srt", "cover.jpg"):
        (folder.parent / name).write_bytes(b"x")
    page.goto("/")
    drop(page, tmp_path / "series")
    jobs = wait_for_jobs(page, site, 5)
    assert sorted(job["filename"] for job in jobs) == [f"{number}.flac" for number in range(5)]
    skipped = page.locator(".toast")
    for name in ("3 files skipped", "0.srt", "cover.jpg"):
        expect(skipped).to_contain_text(name)
    expect(page.get_by_text("Drop to transcribe")).to_have_count(0)
    (tmp_path / "empty").mkdir()
    drop(page, tmp_path / "empty")
    expect(skipped.last).to_contain_text("no files in it")


def test_a_folder_can_be_chosen(page, site, shorts, tmp_path):
    (tmp_path / "a.flac").write_bytes(Path(shorts[0]).read_bytes())
    (tmp_path / "a.txt").write_text("x")
    page.goto("/")
    with page.expect_file_chooser() as chooser:
        page.get_by_role("button", name="Folder").click()
    chooser.value.set_files(tmp_path)
    assert [job["filename"] for job in wait_for_jobs(page, site, 1)] == ["a.flac"]


def test_a_cut_upload_goes_on_where_it_was(page, site, long_recording):
    offsets = sent_offsets(page)
    page.goto("/")
    page.faults.expect(CUT)
    network = send_slowly(page)
    choose(page, long_recording)
    expect(row(page, long_recording.name)).to_contain_text(PART_SENT)
    network(offline=True)
    expect(row(page, long_recording.name)).to_contain_text("goes on by itself")
    before = len(offsets)
    network()
    (job,) = wait_for_jobs(page, site, 1)
    assert job["filename"] == long_recording.name
    wait_for(lambda: page.wait_for_timeout(50) or before < len(offsets))
    assert offsets[before] >= CHUNK


def test_an_upload_goes_on_at_once_when_the_network_is_back(page, site, shorts):
    page.clock.install()
    page.goto("/")
    page.clock.pause_at(page.evaluate("Date.now()") + 1000)  # no pause between attempts ends
    page.faults.expect(CUT)
    page.context.set_offline(True)
    choose(page, shorts[0])
    expect(row(page, "short")).to_contain_text("goes on by itself")
    page.context.set_offline(False)
    wait_for_jobs(page, site, 1)


@pytest.mark.soak
def test_many_files_at_once(page, site, tmp_path):
    names = [f"{number}.mp3" for number in range(32)]
    for name in names:
        (tmp_path / name).write_bytes(b"no sound at all")
    page.goto("/")
    held, is_held = [], True
    page.route("**/v1/uploads", lambda route: held.append(route) if is_held else route.continue_())
    choose(page, *(tmp_path / name for name in names))
    page.get_by_role("button", name=re.compile(r"Show \d more")).click()
    is_held = False
    for route in held:
        route.continue_()
    jobs = wait_for_jobs(page, site, 32)
    assert sorted(job["filename"] for job in jobs) == sorted(names)
    expect(page.locator(".upload")).to_have_count(0)


def send_slowly(page, bytes_per_s=10_000_000):
    """Returns a function that sets the network: `network()` at full speed, `network(offline=True)` cut."""
    session = page.context.new_cdp_session(page)
    session.send("Network.enable")

    def network(offline=False, rate=-1):
        conditions = {"offline": offline, "latency": 0, "downloadThroughput": -1, "uploadThroughput": rate}
        session.send("Network.emulateNetworkConditions", conditions)

    network(rate=bytes_per_s)
    return network


# Only the first part of an upload leaves this page. A route would copy each part to the test: that is slow.
HOLD = """
    const { send, setRequestHeader } = XMLHttpRequest.prototype;
    XMLHttpRequest.prototype.setRequestHeader = function (name, value) {
        if (name.toLowerCase() === "upload-offset") this.offset = Number(value);
        setRequestHeader.call(this, name, value);
    };
    XMLHttpRequest.prototype.send = function (body) {
        if (sessionStorage.goesOn || !this.offset) send.call(this, body);
    };
"""


def begin_upload(page, recording):
    """Send the first part of a recording. The others wait for a reload after `let_pass`."""
    page.add_init_script(HOLD)
    page.goto("/")
    page.faults.expect(CUT)
    choose(page, recording)
    expect(row(page, recording.name)).to_contain_text(PART_SENT)


def let_pass(page):
    page.evaluate("() => { sessionStorage.goesOn = true; }")


COUNT_STORED = """(name) => new Promise((resolve) => {
    indexedDB.open(`uploads to ${location.origin}/`).onsuccess = ({ target: { result } }) => {
        const count = result.transaction(name).objectStore(name).count();
        count.onsuccess = () => { result.close(); resolve(count.result); };
    };
})"""


def wait_until_kept(page):
    page.wait_for_function(COUNT_STORED, arg="files")


def test_a_reload_in_mid_upload_loses_nothing(page, site, long_recording):
    begin_upload(page, long_recording)
    wait_until_kept(page)
    let_pass(page)
    offsets = sent_offsets(page)
    # The service restarts just then: that is no reason to begin anew.
    page.route(PARTS, lambda route: route.fulfill(status=502), times=1)
    page.reload()
    (job,) = wait_for_jobs(page, site, 1)
    assert job["filename"] == long_recording.name
    assert offsets
    assert offsets[0] >= CHUNK
    expect(row(page, long_recording.name).filter(has=page.locator("progress"))).to_have_count(0)
    assert page.evaluate(COUNT_STORED, "uploads") == page.evaluate(COUNT_STORED, "files") == 0


def test_two_tabs_do_not_send_the_same_upload(page, site, long_recording):
    begin_upload(page, long_recording)  # the first tab keeps it
    wait_until_kept(page)
    second = page.context.new_page()
    offsets = sent_offsets(second)
    second.goto("/")
    second.wait_for_timeout(700)  # it asks other tabs meanwhile
    assert offsets == []
    assert second.locator(".upload").count() == 0
    page.close()
    second.reload()
    wait_for_jobs(second, site, 1)
    assert offsets
    assert offsets[0] >= CHUNK


# A browser that has no space for files.
FULL = """
    const { put } = IDBObjectStore.prototype;
    IDBObjectStore.prototype.put = function (...values) {
        if (this.name === "files") throw new DOMException("full", "QuotaExceededError");
        return put.apply(this, values);
    };
"""


def test_a_file_that_the_browser_does_not_keep_is_chosen_again(page, site, long_recording, shorts):
    page.add_init_script(FULL)
    begin_upload(page, long_recording)
    let_pass(page)
    page.reload()
    lost = row(page, long_recording.name)
    expect(lost).to_contain_text("choose the file again to go on")
    offsets = sent_offsets(page)
    lost.locator("input[type=file]").set_input_files(shorts[0])
    expect(page.locator(".toast")).to_contain_text("This is another file")
    drop(page, long_recording)
    wait_for_jobs(page, site, 1)
    assert offsets
    assert offsets[0] >= CHUNK


def test_a_file_that_is_chosen_again_while_the_service_is_away_belongs_to_its_row(page, site, long_recording):
    page.add_init_script(FULL)
    begin_upload(page, long_recording)
    let_pass(page)
    page.route(PARTS, lambda route: route.fulfill(status=503))
    page.reload()
    expect(row(page, long_recording.name)).to_contain_text("goes on by itself")
    offsets = sent_offsets(page)
    drop(page, long_recording)
    expect(page.locator(".upload")).to_have_count(1)
    page.unroute_all()
    wait_for_jobs(page, site, 1)
    assert min(offsets) >= CHUNK


def test_a_job_is_made_once_though_its_answer_was_lost(page, site, shorts):
    page.goto("/")
    page.faults.expect(CUT)

    def lose(route):
        if route.request.method == "POST":
            route.fetch()
            route.abort("connectionreset")
        else:
            route.continue_()

    page.route("**/v1/jobs", lose)
    choose(page, shorts[0])
    expect(row(page, Path(shorts[0]).name)).to_contain_text("goes on by itself")
    page.unroute("**/v1/jobs")
    with page.expect_response(lambda answer: answer.request.method == "POST" and answer.status == 202):
        page.reload()
    expect(page.locator(".upload")).to_have_count(0)
    wait_for_jobs(page, site, 1)


def test_a_full_service_is_waited_for(page, site, shorts):
    page.goto("/")
    page.faults.expect(CUT)
    refused = []

    def refuse(route):
        if route.request.method != "POST" or refused:
            return route.continue_()
        refused.append(route)
        error = {"message": "3 jobs are waiting already; try again later.", "type": "x", "code": "queue_full"}
        return route.fulfill(status=429, headers={"Retry-After": "1"}, json={"error": error})

    page.route("**/v1/jobs", refuse)
    choose(page, shorts[0])
    # What happened, and not what to do: "Try again" beside "goes on by itself" would contradict it.
    expect(row(page, "short")).to_contain_text("goes on by itself")
    expect(row(page, "short").locator(".upload-message")).to_have_text(
        "The service has as much to do as it takes."
    )
    wait_for_jobs(page, site, 1)


def ask_for_key(page, pattern):
    """Let the service want the key `right`."""

    def check(route):
        if route.request.headers.get("authorization") == "Bearer right":
            return route.continue_()
        error = {"message": "This service needs a key.", "type": "x", "code": "invalid_api_key"}
        return route.fulfill(status=401, json={"error": error})

    page.route(pattern, check)


def give_key(page, key):
    page.get_by_label("Key", exact=True).fill(key)
    page.get_by_role("button", name="Use key").click()


def test_an_upload_goes_on_with_another_key(page, site, shorts):
    page.goto("/")
    page.faults.expect(CUT)
    begun = []
    page.on("request", lambda request: begun.append(request.url) if request.method == "POST" else None)
    ask_for_key(page, PARTS)
    choose(page, shorts[0])
    give_key(page, "right\u200b")  # it ends with an invisible character, which no header can have
    expect(page.get_by_role("alert")).to_contain_text("does not know this key")
    give_key(page, "right")
    wait_for_jobs(page, site, 1)
    assert [url.rpartition("/")[2] for url in begun] == ["uploads", "jobs"]


def test_a_file_that_is_too_large_or_empty_is_not_sent(page, site, long_recording, tmp_path):
    empty = tmp_path / "empty.wav"
    empty.touch()
    with_service_data(page, max_upload_mb=10)
    requests = []
    page.on("request", lambda request: requests.append(request.url))
    choose(page, long_recording, empty)
    expect(row(page, empty.name)).to_contain_text("The file is empty")
    expect(row(page, long_recording.name)).to_contain_text("larger than the 10 MB that the service takes")
    expect(row(page, long_recording.name).get_by_role("button", name=re.compile("Retry"))).to_have_count(0)
    page.get_by_role("button", name=f"Remove: {long_recording.name}").click()
    expect(row(page, long_recording.name)).to_have_count(0)
    page.reload()
    page.locator(".drop-zone").wait_for()
    expect(row(page, empty.name)).to_have_count(0)
    assert not [url for url in requests if "/v1/uploads" in url]


def test_an_upload_can_be_paused_removed_and_resumed(page, site, long_recording, shorts):
    begin_upload(page, long_recording)
    page.get_by_role("button", name=f"Pause: {long_recording.name}").click()
    expect(row(page, long_recording.name)).to_contain_text("paused")
    let_pass(page)
    page.reload()
    resume = page.get_by_role("button", name=f"Go on: {long_recording.name}")
    resume.focus()
    page.keyboard.press("Enter")
    wait_for_jobs(page, site, 1)


def test_options_are_remembered_and_sent_if_changed(page, site, shorts):
    page.goto("/")
    page.get_by_text("Options", exact=True).click()
    page.get_by_label("Language spoken").select_option(label="German")
    page.get_by_label("Names and terms").fill("Maier")
    page.get_by_text("More", exact=True).click()
    page.get_by_label("Wordings compared at once").fill("3")
    page.get_by_label("Wordings compared at once").press("Tab")
    page.get_by_label("Wordings compared at once").fill("5")  # the default
    page.get_by_label("Wordings compared at once").press("Tab")
    expect(page.get_by_text("2 changed")).to_be_visible()
    page.reload()
    expect(page.get_by_label("Language spoken")).to_have_value("de")
    with page.expect_request(lambda request: request.method == "POST" and "/v1/jobs" in request.url) as sent:
        choose(page, shorts[0])
    body = sent.value.post_data_json
    assert {name: value for name, value in body.items() if name != "upload"} == {
        "language": "de",
        "hotwords": "Maier",
    }
    page.get_by_role("button", name="Reset all").click()
    expect(page.get_by_text("2 changed")).to_have_count(0)
    expect(page.get_by_label("Names and terms")).to_have_value("")
    assert wait_for_jobs(page, site, 1)[0]["options"]["language"] == "de"


def test_who_speaks_is_asked_without_opening_anything(page, site, shorts):
    page.goto("/")
    page.get_by_label("Who speaks").select_option(label="Tell voices apart")
    page.get_by_label("Number of speakers").fill("2")
    page.get_by_label("Number of speakers").press("Tab")
    with page.expect_request(lambda request: request.method == "POST" and "/v1/jobs" in request.url) as sent:
        choose(page, shorts[0])
    assert (sent.value.post_data_json["diarize"], sent.value.post_data_json["num_speakers"]) == (True, 2)
    wait_for_jobs(page, site, 1)


def test_what_is_typed_counts_though_the_field_is_not_left(page, site, shorts):
    page.goto("/")
    page.get_by_text("Options", exact=True).click()
    page.get_by_label("Names and terms").press_sequentially("Maier")
    with page.expect_request(lambda request: request.method == "POST" and "/v1/jobs" in request.url) as sent:
        drop(page, shorts[0])
    assert sent.value.post_data_json["hotwords"] == "Maier"
    wait_for_jobs(page, site, 1)


def test_a_remembered_model_counts_before_the_list_of_models_is_there(page, site, shorts):
    page.faults.expect("status of 404")
    page.add_init_script("localStorage.setItem('whisperfleet.options', '{\"model\": \"gone\"}')")
    page.goto("/#/fleet")  # it has no list of models
    page.get_by_role("main").wait_for()
    with page.expect_request(lambda request: request.method == "POST" and "/v1/jobs" in request.url) as sent:
        drop(page, shorts[0])
    assert sent.value.post_data_json["model"] == "gone"
    page.get_by_role("button", name="Show", exact=True).click()
    page.get_by_role("button", name="Retry").click()  # now the page knows that there is no such model
    wait_for_jobs(page, site, 1)


@pytest.mark.parametrize(
    ("locale", "message"),
    [
        ("en-GB", "The file is empty (0 bytes)"),
        ("de-DE", "Die Datei ist leer (0 Byte)."),
        ("es-ES", "El archivo está vacío (0 bytes)."),
    ],
)
def test_each_language_has_its_own_errors_and_fits_a_phone(new_page, site, tmp_path, locale, message):
    page = new_page(site, locale=locale, viewport={"width": 375, "height": 700})
    page.faults.expect(CUT)
    (tmp_path / "nothing.mp3").touch()
    page.goto("/")
    choose(page, tmp_path / "nothing.mp3")
    expect(row(page, "nothing.mp3")).to_contain_text(message)
    lines = page.locator(".drop-zone-sources > button").evaluate_all("""(buttons) => buttons.map((button) => {
        const range = document.createRange();
        range.selectNodeContents(button.lastChild);
        return range.getClientRects().length;
    })""")
    assert lines == [1, 1, 1, 1]


def test_a_pasted_url_says_that_the_service_takes_none(page, site):
    page.goto("/")
    paste(page, "https://example.org/talk.mp3")
    expect(page.locator(".toast")).to_contain_text("This service takes no links")
    expect(page.get_by_role("button", name="Link")).to_have_count(0)


def test_a_url_becomes_a_row_with_the_answer_of_the_service(page, site):
    page.faults.expect(CUT)
    with_service_data(page, urls=True)
    page.get_by_role("button", name="Link").click()
    field = page.get_by_label("Web address of a recording")
    field.fill("talk.mp3")
    field.press("Enter")
    expect(page.get_by_text("This is no web address")).to_be_visible()
    field.fill("https://example.org/talk.mp3")
    field.press("Enter")
    expect(page.get_by_role("button", name="Link")).to_be_focused()
    # The service itself takes none.
    expect(row(page, "talk.mp3")).to_contain_text("This service takes no links")
