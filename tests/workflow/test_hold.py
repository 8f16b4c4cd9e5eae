"""The machine lock: timed jobs alone, others side by side, and nothing left behind by a killed one."""

import os
import signal
import subprocess
import time

import pytest

from tests.workflow.conftest import ROOT

HOLD = ROOT / "workflow/scripts/hold"


@pytest.fixture
def start(tmp_path):
    """Start a command under the lock; all are killed at the end."""
    started = []

    def run(mode: str, *command: str) -> subprocess.Popen:
        environment = {**os.environ, "SPECDEC_LOCK": str(tmp_path / "lock")}
        process = subprocess.Popen(
            [HOLD, mode, *command], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        started.append(process)
        return process

    yield run
    for process in started:
        process.kill()
        process.communicate()


def begin(start, mode: str, tmp_path, name: str) -> subprocess.Popen:
    """A job that says that it runs by making a file, and then goes on for long."""
    return start(mode, "sh", "-c", f"touch {tmp_path / name}; exec sleep 60")


def runs(path, within_s: float = 5.0) -> bool:
    deadline = time.monotonic() + within_s
    while not path.exists():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_untimed_jobs_run_side_by_side(start, tmp_path):
    begin(start, "shared", tmp_path, "one")
    begin(start, "shared", tmp_path, "two")
    assert runs(tmp_path / "one")
    assert runs(tmp_path / "two")


@pytest.mark.parametrize(("first", "second"), [("shared", "alone"), ("alone", "shared"), ("alone", "alone")])
def test_a_timed_job_is_alone_and_a_killed_job_frees_the_machine(start, tmp_path, first, second):
    holder = begin(start, first, tmp_path, "first")
    assert runs(tmp_path / "first")
    begin(start, second, tmp_path, "second")
    assert not runs(tmp_path / "second", within_s=0.5)
    holder.send_signal(signal.SIGKILL)
    assert runs(tmp_path / "second")


def test_the_exit_code_is_the_commands_and_waiting_is_told(start, tmp_path):
    holder = begin(start, "alone", tmp_path, "first")
    assert runs(tmp_path / "first")
    waiting = start("shared", "sh", "-c", "exit 7")
    assert "waiting for" in waiting.stderr.readline()
    holder.terminate()
    assert waiting.wait(5) == 7


def test_another_mode_is_refused(start):
    process = start("sharred", "true")
    assert process.wait(5) == 2
    assert "neither alone nor shared" in process.stderr.read()
