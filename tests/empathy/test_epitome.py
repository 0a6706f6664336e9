"""Reading, checking, splitting and counting EPITOME's pairs."""

from __future__ import annotations

import hashlib

import numpy as np
import pandas as pd
import pytest
from epitome_like import made_pairs
from hypothesis import given, settings
from hypothesis import strategies as st

from xlc_utils.empathy import epitome, evaluate
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS


def test_a_release_is_read_as_it_was_written(release):
    pd.testing.assert_frame_equal(epitome.read(release), made_pairs()[list(epitome.read(release))], check_dtype=False)


def test_the_folder_may_come_from_the_environment(release, monkeypatch):
    monkeypatch.setenv("XLC_DATA", str(release.parent))
    assert len(epitome.read()) == len(made_pairs())


def test_without_a_folder_it_says_how_to_get_one(monkeypatch, tmp_path):
    monkeypatch.delenv("XLC_DATA", raising=False)
    with pytest.raises(Problem, match=r"XLC_DATA is not set; .*xlc_utils\.empathy\.epitome\.fetch"):
        epitome.data_folder()
    with pytest.raises(Problem, match="there is no such folder"):
        epitome.data_folder(tmp_path / "nowhere")


def change(release, name, do):
    table = pd.read_csv(release / name, dtype=str, keep_default_na=False)
    do(table).to_csv(release / name, index=False)


def with_cell(row, column, value):
    def do(table):
        table.loc[row, column] = value
        return table

    return do


@pytest.mark.parametrize(
    ("name", "do", "told"),
    [
        (
            "explorations-reddit.csv",
            lambda t: t.drop(columns="level"),
            "explorations-reddit.csv: it has no column `level`",
        ),
        ("explorations-reddit.csv", lambda t: t.drop(columns="rationales"), "it has no column `rationales`"),
        ("explorations-reddit.csv", with_cell(4, "level", "3"), "row 5 after the header: the level '3' is not one of"),
        ("explorations-reddit.csv", with_cell(4, "level", "1.5"), "the level '1.5' is not one of"),
        ("interpretations-reddit.csv", with_cell(2, "response_post", " "), "row 3 .*: its `response_post` is"),
        ("emotional-reactions-reddit.csv", lambda t: t.iloc[1:], "rows and interpretations-reddit.csv has"),
        (
            "emotional-reactions-reddit.csv",
            lambda t: t.iloc[::-1],
            "row 1 after the header: it is another pair than in",
        ),
    ],
)
def test_what_is_wrong_with_a_file_is_said(release, name, do, told):
    change(release, name, do)
    with pytest.raises(Problem, match=told.replace("(", r"\(")):
        epitome.read(release)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b'sp_id,rp_id\n"open', b""])
def test_a_file_that_is_no_table(release, content):
    (release / "explorations-reddit.csv").write_bytes(content)
    with pytest.raises(Problem, match=r"explorations-reddit\.csv: it (is not a table in UTF-8|has no column)"):
        epitome.read(release)


def test_a_missing_file_and_a_changed_one(release):
    with pytest.raises(Problem, match="not the pinned 225b28ffdc25"):
        epitome.verify(release)
    (release / "explorations-reddit.csv").unlink()
    with pytest.raises(Problem, match=r"cannot be read .*download it with xlc_utils\.empathy\.epitome\.fetch"):
        epitome.read(release)


def test_fetch_checks_what_arrives(tmp_path, monkeypatch):
    home = tmp_path / "home"
    (home / "dataset").mkdir(parents=True)
    (home / "dataset" / "one.csv").write_text("one", encoding="utf-8")
    pinned = {"one.csv": ("dataset/one.csv", hashlib.sha256(b"one").hexdigest())}
    monkeypatch.setattr(epitome, "FILES", pinned)
    (path,) = epitome.fetch(tmp_path / "data", home.as_uri())
    assert path.read_text(encoding="utf-8") == "one"
    (home / "dataset" / "one.csv").write_text("other", encoding="utf-8")
    assert epitome.fetch(tmp_path / "data", home.as_uri()) == [path], "a right file is not fetched again"
    with pytest.raises(Problem, match="not the pinned"):
        epitome.fetch(tmp_path / "elsewhere", home.as_uri())
    assert not (tmp_path / "elsewhere").exists()


def test_the_address_names_the_pinned_commit():
    commit = "0e11f98901527550885dbf253bd2af92dbcec43b"
    assert f"https://raw.githubusercontent.com/behavioral-data/Empathy-Mental-Health/{commit}" == epitome.HOME


# ---- the split -------------------------------------------------------------------------------------------------------
some_pairs = st.lists(st.integers(0, 400), min_size=1, max_size=300).map(
    lambda posts: pd.DataFrame({"sp_id": [f"s{post}" for post in posts]})
)


@settings(deadline=None)
@given(pairs=some_pairs, seed=st.integers(0, 2**31))
def test_no_post_is_in_two_parts_and_the_shares_are_met(pairs, seed):
    parts = epitome.split(pairs, seed)
    by_post = parts.groupby(pairs["sp_id"]).agg(["nunique", "first"])
    assert (by_post["nunique"] == 1).all()
    counts = by_post["first"].value_counts()
    assert set(counts.index) <= set(epitome.PARTS)
    for part, share in epitome.PARTS.items():
        assert abs(counts.get(part, 0) - share * len(by_post)) <= 1


@settings(deadline=None)
@given(pairs=some_pairs, seed=st.integers(0, 1000), data=st.data())
def test_the_split_does_not_depend_on_the_order_of_rows_or_on_repeated_rows(pairs, seed, data):
    parts = dict(zip(pairs["sp_id"], epitome.split(pairs, seed), strict=True))
    order = data.draw(st.permutations(range(len(pairs))))
    again = pd.concat([pairs.iloc[list(order)], pairs.iloc[:3]])
    assert dict(zip(again["sp_id"], epitome.split(again, seed), strict=True)) == parts


def test_the_split_is_pinned_and_differs_by_seed():
    pairs = pd.DataFrame({"sp_id": [f"s{i}" for i in range(20)]})
    first = epitome.split(pairs, 0)
    # The order of `printf 'split 0\ns0' | sha256sum`, and so on.
    assert list(first.index[first == "dev"]) == [7] and list(first.index[first == "test"]) == [12, 14, 17, 18]
    assert not first.equals(epitome.split(pairs, 1))


def test_a_saved_split_says_its_seed_and_holds_ids_alone(tmp_path):
    pairs = made_pairs()
    epitome.save_split(pairs, 7, tmp_path / "new" / "split.csv")
    saved = pd.read_csv(tmp_path / "new" / "split.csv")
    assert list(saved) == ["seed", "sp_id", "split"] and set(saved["seed"]) == {7} and saved["sp_id"].is_unique
    parts = dict(zip(pairs["sp_id"], epitome.split(pairs, 7), strict=True))
    assert dict(zip(saved["sp_id"], saved["split"], strict=True)) == parts


def test_shares_and_their_table():
    pairs = made_pairs()
    shares = epitome.split_shares(pairs, [0, 1])
    assert len(shares) == 2 * 3 * 3
    counts = shares.drop_duplicates(["seed", "split"]).groupby("seed")[["n_pairs", "n_seekers"]].sum()
    assert (counts == [len(pairs), pairs["sp_id"].nunique()]).all(axis=None)
    test = pairs[epitome.split(pairs, 1) == "test"]
    row = shares.query("seed == 1 and split == 'test' and mechanism == 'IP'").iloc[0]
    assert row["share"] == pytest.approx(100 * test["IP"].mean())
    table = epitome.split_table(shares).set_index(["mechanism", "split"])
    assert table.loc[("ER", "test"), "printed"] == 35.5 and table.loc[("EX", "dev"), "printed"] == 13.0
    assert ((table["lowest"] <= table["ours"]) & (table["ours"] <= table["highest"])).all() and len(table) == 9


# ---- duplicates and prompts ------------------------------------------------------------------------------------------
def test_duplicates_are_pairs_whose_labels_differ():
    pairs = made_pairs(20).assign(ER=0, ER_level=0, IP=1, IP_level=1, EX=0, EX_level=0)
    again = pairs.iloc[:10].copy()
    again.loc[again.index[:2], ["ER", "ER_level"]] = 1  # another label
    again.loc[again.index[2], "IP_level"] = 2  # another level, the same label
    found = epitome.duplicates(pd.concat([pairs, again])).set_index("mechanism")
    assert found["pairs"].tolist() == [10, 10, 10]
    assert found["labels_differ"].tolist() == [2, 0, 0] and found["levels_differ"].tolist() == [2, 1, 0]
    assert found.loc["ER", "agreement"] == pytest.approx(80) and found.loc["IP", "ceiling"] == pytest.approx(100)


def test_the_ceiling_is_the_accuracy_of_labels_that_err_independently():
    rng, n, right = np.random.default_rng(0), 40000, 0.9
    truth = rng.integers(0, 2, n)
    rows = []
    for _ in range(2):
        label = np.where(rng.random(n) < right, truth, 1 - truth)
        ids = np.arange(n).astype(str)
        labels = {m: label for m in MECHANISMS} | {f"{m}_level": label for m in MECHANISMS}
        rows.append(pd.DataFrame({"sp_id": ids, "rp_id": ids, **labels}))
    assert epitome.duplicates(pd.concat(rows))["ceiling"].iloc[0] == pytest.approx(100 * right, abs=0.7)


@settings(max_examples=25, deadline=None)
@given(n=st.integers(1, 40), seed=st.integers(0, 100))
def test_evaluation_prompts_are_test_posts_in_the_proportions_of_the_test(n, seed):
    pairs = made_pairs(250)
    parts = epitome.split(pairs, 3)
    chosen = epitome.evaluation_prompts(pairs, parts, n, seed)
    test = pairs[parts == "test"]
    assert len(chosen) == n and chosen["sp_id"].is_unique and set(chosen["sp_id"]) <= set(test["sp_id"])
    posts = test.groupby("sp_id")[list(MECHANISMS)].max()
    wanted = posts.value_counts() * n / len(posts)
    counts = chosen[list(MECHANISMS)].value_counts().reindex(wanted.index, fill_value=0)
    assert ((counts - wanted).abs() < 1).all()
    assert (chosen.set_index("sp_id")["seeker"] == test.groupby("sp_id")["seeker"].first()[chosen["sp_id"]]).all()


def test_evaluation_prompts_are_deterministic_and_not_more_than_there_are():
    pairs = made_pairs(250)
    shuffled = pairs.sample(frac=1, random_state=1)
    first = epitome.evaluation_prompts(pairs, epitome.split(pairs, 0), 20)
    pd.testing.assert_frame_equal(first, epitome.evaluation_prompts(shuffled, epitome.split(shuffled, 0), 20))
    other = epitome.evaluation_prompts(pairs, epitome.split(pairs, 0), 20, seed=1)
    assert set(other["sp_id"]) != set(first["sp_id"])
    with pytest.raises(Problem, match="51 are asked for and the test has 50 posts"):
        epitome.evaluation_prompts(pairs, epitome.split(pairs, 0), 51)


# ---- EPITOME itself --------------------------------------------------------------------------------------------------
def test_counts_of_the_real_pairs(real_pairs):
    assert len(real_pairs) == 3084
    assert real_pairs["sp_id"].nunique() == real_pairs["seeker"].nunique() == 2979
    levels = {m: real_pairs[f"{m}_level"].value_counts().sort_index().tolist() for m in MECHANISMS}
    assert levels == {"ER": [2037, 895, 152], "IP": [1626, 114, 1344], "EX": [2604, 104, 376]}
    profiles = real_pairs[list(MECHANISMS)].value_counts()
    assert profiles[(0, 0, 0)] == 703 and profiles[(0, 1, 0)] == 987 and profiles[(1, 1, 1)] == 31


def test_the_real_duplicates(real_pairs):
    found = epitome.duplicates(real_pairs)
    assert found["pairs"].tolist() == [60, 60, 60]
    assert found["labels_differ"].tolist() == [8, 10, 4] and found["levels_differ"].tolist() == [10, 10, 5]
    pd.testing.assert_frame_equal(found.round(2), evaluate.read_table("duplicates"))


def test_the_committed_shares_are_those_of_the_real_splits(real_pairs):
    shares = epitome.split_shares(real_pairs, evaluate.SEEDS).round(2)
    pd.testing.assert_frame_equal(shares, evaluate.read_table("splits"))


def test_the_printed_shares_are_plausible_for_a_random_split(real_pairs):
    table = epitome.split_table(epitome.split_shares(real_pairs, range(40)))
    assert ((table["lowest"] <= table["printed"]) & (table["printed"] <= table["highest"])).all()


def test_a_hundred_prompts_from_the_real_test(real_pairs):
    parts = epitome.split(real_pairs, 0)
    chosen = epitome.evaluation_prompts(real_pairs, parts)
    assert len(chosen) == 100
    posts = real_pairs[parts == "test"].groupby("sp_id")[list(MECHANISMS)].max()
    assert (chosen[list(MECHANISMS)].mean() - posts.mean()).abs().max() < 0.02
