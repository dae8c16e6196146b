"""The backend in torch, on a CPU: kills, short memory and restarts cost time alone."""

import pytest

pytestmark = pytest.mark.timeout(180)

TORCH = {"WHISPER_BACKEND": "torch"}
ONE_WORKER = {**TORCH, "WHISPER_GPUS": "0", "WHISPER_CPU_THREADS": 2}


def test_a_kill_and_short_memory_cost_no_words(commands, sabotage, server, shorts, background):
    sabotage.plan(batch_limits={"auto": 1})
    torch = commands.ready(**ONE_WORKER, **sabotage.settings)
    [row] = torch.workers()
    assert (row["backend"], row["compute_type"], row["batch_size"]) == ("torch", "float32", 4)
    work = [background.submit(torch.srt, path) for path in shorts]
    torch.kill(row["pid"])
    assert [one.result() for one in work] == [server.srt(path) for path in shorts]
    [row] = torch.workers()
    assert row["restarts"] == 1


@pytest.mark.soak
def test_memory_that_is_short_for_torch(commands, sabotage, server, two_minutes, shorts, background):
    sabotage.plan(batch_limits={"auto": 1})
    torch = commands.ready(**ONE_WORKER, **sabotage.settings)
    requests = [background.submit(torch.srt, two_minutes) for _ in range(3)]  # so that clips queue up
    assert len({request.result() for request in requests}) == 1
    [row] = torch.workers()
    assert (row["backend"], row["batch_size"], row["restarts"]) == ("torch", 1, 0)
    sabotage.plan(batch_limits={"auto": 0})
    failed = torch.post(shorts[0])  # CTranslate2 takes less, but here it has no more
    assert (failed.status_code, failed.json()["error"]["code"]) == (500, "clip_failed")
    sabotage.plan()
    assert torch.srt(shorts[0]) == server.srt(shorts[0])
    [row] = torch.workers()
    assert row["backend"] == "ctranslate2"
    assert "out of memory" in row["error"]
