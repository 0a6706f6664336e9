"""kill -9 at random moments: nothing that was answered is lost, and the tables come out as if nothing had happened.

Killed are `xlc run`, a papermill that somebody started by hand, and the kernel of either. XLC_KILLS=200, as in CI,
tries so many points (half an hour on two cores); the suite itself tries one.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import time
from collections import Counter
from dataclasses import replace
from pathlib import Path

import psutil
from child import command, ended, is_running, wait_for, write_notebook, xlc
from fake_endpoint import Answer, FakeEndpoint, completion

from xlc_utils.chat.record import Record

POINTS, IN_FLIGHT = int(os.environ.get("XLC_KILLS", 1)), 8
ASK = """from xlc_utils.chat.base import Chat, Sampling
replies = run.chat("aya-exp-8b").complete([Chat.user(f"q{i}") for i in range(150)], Sampling())"""
WRITE = """import pandas as pd
rows = [{"text": r.text, "outcome": str(r.outcome)} for r in replies]
run.write_csv("answers", pd.DataFrame(rows))"""


def question(request: dict) -> str:
    return request["body"]["messages"][-1]["content"]


def answer(request: dict) -> Answer:
    return replace(completion("re " + question(request)), seconds=0.1)


def recorded(folder: Path) -> dict[str, str]:
    """Key and reply of each answered call."""
    path = folder / "calls.sqlite"
    if not path.exists():
        return {}
    record = Record(path)
    rows = {key: reply for key, _, _, reply, _ in record.rows()}
    record.close()
    return rows


def test_killed_anywhere_it_ends_as_if_nothing_had_happened(project: Path, write_params, endpoint: FakeEndpoint):
    endpoint.otherwise = answer
    models = project / "params" / "models.yaml"
    models.write_text(models.read_text().replace("http://localhost:8000/v1", endpoint.url))
    notebook = write_notebook(project, "01_first", ASK, WRITE)
    chosen = random.Random(0)

    def run(name: str) -> subprocess.Popen:
        return xlc(project, "run", str(write_params(run_name=name)))

    def papermill(name: str) -> subprocess.Popen:
        given = ("-k", "python3", "--language", "python", "-p", "run_name", name)
        return command(project, "papermill", str(notebook), str(project / "by_hand.ipynb"), *given)

    code, _, err = ended(run("whole"))
    assert code == 0, err
    whole = (project / "results" / "whole" / "answers.csv").read_bytes()
    endpoint.requests.clear()

    killed: Counter[str] = Counter()
    kills = lost = asked_twice = 0
    turn = 0
    while kills < POINTS:
        folder, before = project / "results" / f"run{turn}", len(endpoint.requests)
        killed_here, there = 0, {}
        while kills < POINTS and killed_here < 5:  # several times in one run, until it is done in spite of it
            left = 150 - len(recorded(folder))
            start, at = len(endpoint.requests), chosen.randrange(1, max(2, left - IN_FLIGHT))
            starter, victim = chosen.choice([run, papermill]), chosen.choice(["starter", "kernel"])
            process = starter(f"run{turn}")
            wait_for(lambda: len(endpoint.requests) >= start + at or process.poll() is not None)  # noqa: B023
            time.sleep(chosen.uniform(0, 0.1))
            children = psutil.Process(process.pid).children() if process.poll() is None else []
            if process.poll() is not None or not children:
                code, _, err = ended(process)
                assert code == 0, f"it ended before it was killed: {err}"
                break
            os.kill(process.pid if victim == "starter" else children[0].pid, signal.SIGKILL)
            ended(process)
            killed[f"{victim} of {starter.__name__}"] += 1
            assert wait_for(lambda: not any(is_running(c.pid) for c in children), seconds=30)  # noqa: B023
            there = recorded(folder) | there  # as each was found first
            kills, killed_here = kills + 1, killed_here + 1
        code, _, err = ended(run(f"run{turn}"))
        assert code == 0, err
        now = recorded(folder)
        lost += sum(now.get(key) != reply for key, reply in there.items())
        times = Counter(question(r) for r in endpoint.requests[before:])
        asked_twice += sum(times.values()) - 150
        # As many again may have come and been about to be written while the next were sent.
        assert sum(times.values()) - 150 <= killed_here * 2 * IN_FLIGHT, "more than what was in flight or just coming"
        assert (folder / "answers.csv").read_bytes() == whole
        turn += 1
    print(f"\n{kills} points, {lost} lost, {asked_twice} asked again, tables identical; {dict(killed)}")
    assert lost == 0
