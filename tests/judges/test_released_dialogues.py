"""Reading, checking, verifying and fetching paper B's release."""

from __future__ import annotations

import hashlib
import json
import sys
import threading
import types
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer

import pandas as pd
import pytest
from short_dialogues import PARAMETERS, dialogue

from xlc_utils.judges import rebuild, released
from xlc_utils.judges.released import (
    fetch,
    fetch_hub,
    parse_dialogues,
    read_annotated,
    read_dialogues,
    read_hub,
    read_ratings,
    remarks,
    verify,
)
from xlc_utils.registry.problems import Problem


def content(**changes):
    """The JSON of a file with one dialogue of two turns, with `changes` to the dialogue."""
    turns = [
        {"from_name": "Klaus", "from_type": "agent", "message": "Hello!"},
        {"from_name": "Anna", "from_type": "customer", "message": "Where is my parcel?"},
    ]
    metadata = {"language": "en", "n_messages": 2, "n_agents": 1} | PARAMETERS
    return {"gpt-4.1-mini": [{"messages": turns, "_metadata": metadata} | changes]}


def test_a_dialogue_is_read_as_it_stands():
    (found,) = parse_dialogues(content(), "en", "combined_en.json")
    assert (found.language, found.model, found.index) == ("en", "gpt-4.1-mini", 0)
    assert [(turn.sender, turn.name, turn.text) for turn in found.turns] == [
        ("agent", "Klaus", "Hello!"),
        ("customer", "Anna", "Where is my parcel?"),
    ]
    assert found.parameters == PARAMETERS | {"n_messages": 2, "n_agents": 1}
    assert not found.has_placeholders


def without(name):
    metadata = content()["gpt-4.1-mini"][0]["_metadata"]
    return {key: value for key, value in metadata.items() if key != name}


@pytest.mark.parametrize(
    ("changes", "told"),
    [
        ({"_metadata": None}, "dialogue 0: it has no `_metadata`"),
        ({"_metadata": without("channel")}, "has no `channel`"),
        ({"_metadata": without("language") | {"language": "fi"}}, "says language 'fi' in a file of 'en'"),
        ({"messages": None}, "no list `messages`"),
        ({"messages": [{"message": "Hello!"}]}, "turn 1: it has no sender"),
        ({"messages": [{"from_type": "agent"}]}, "turn 1: it has no text"),
        ({"messages": [{"from_type": "boss", "message": "Hello!"}]}, "its sender 'boss' is not known"),
    ],
)
def test_what_is_wrong_with_a_dialogue_is_said(changes, told):
    with pytest.raises(Problem, match=told):
        parse_dialogues(content(**changes), "en", "combined_en.json")


@pytest.mark.parametrize("wrong", [[], {"gpt-4.1-mini": {}}, "text"])
def test_a_file_of_another_shape(wrong):
    with pytest.raises(Problem, match="not a mapping of generator ids"):
        parse_dialogues(wrong, "en", "combined_en.json")


def test_placeholders_and_single_messages_are_remarked():
    dialogues = [
        dialogue("et", ["Tere!", "Tere!"], industry="Customer Service"),
        dialogue("et", ["Tere!", "Tere!"], channel="UNK"),
        dialogue("et", ["Tere!"]),
        dialogue("fi", ["Hei!", "Hei!"]),
    ]
    placeholders, short = remarks(dialogues)
    assert placeholders.startswith("et: 2 of 3") and "placeholders" in placeholders
    assert short.startswith("et: 1 of 3") and "fewer than two messages" in short


def test_no_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("XLC_DATA", raising=False)
    with pytest.raises(Problem, match="XLC_DATA is not set"):
        read_dialogues()
    monkeypatch.setenv("XLC_DATA", str(tmp_path))
    with pytest.raises(Problem, match="no such folder"):
        read_dialogues()
    with pytest.raises(Problem, match=r"combined_et\.json: it cannot be read"):
        read_dialogues(tmp_path)


def test_the_folder_may_come_from_the_environment(monkeypatch, tmp_path):
    folder = tmp_path / "judge-stability"
    folder.mkdir()
    (folder / "combined_en.json").write_text(json.dumps(content()), encoding="utf-8")
    monkeypatch.setenv("XLC_DATA", str(tmp_path))
    assert len(read_dialogues(languages=["en"])) == 1


def test_a_truncated_file(tmp_path):
    (tmp_path / "combined_en.json").write_text(json.dumps(content())[:-20], encoding="utf-8")
    with pytest.raises(Problem, match="it is not JSON"):
        read_dialogues(tmp_path, ["en"])


def test_a_changed_file_is_not_the_release(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(released, "FILES", {"combined_en.json": released.FILES["combined_en.json"]})
    (tmp_path / "combined_en.json").write_text("{}", encoding="utf-8")
    with pytest.raises(Problem, match="not the pinned e7f87ba7b2b3"):
        verify(tmp_path)
    assert rebuild.main([str(tmp_path)]) == 2
    assert "not the pinned" in capsys.readouterr().err


def test_rebuild_wants_one_folder(capsys):
    assert rebuild.main([]) == 2
    assert "usage" in capsys.readouterr().err


def write_ratings(folder, rows):
    for name, annotator in released.RATING_FILES.items():
        header = f"{annotator},conversation_external_id,rating_category_name,rating_value,rating_max"
        (folder / name).write_text("\n".join([header, *rows.get(annotator, [])]) + "\n", encoding="utf-8")


def test_a_rating_in_both_tables_counts_once_and_an_empty_one_not(tmp_path):
    write_ratings(
        tmp_path,
        {
            "calibration_reviewer_name": [
                "A1,d1,Does the content make sense?,1.0,1",
                "A2,d1,Does the content make sense?,,1",
            ],
            "reviewer_name": [
                "A1,d1,Does the content make sense?,1.0,1",
                'A3,d1,"Is this fluent, human-written Estonian?",3.0,3',
            ],
        },
    )
    assert read_ratings(tmp_path).to_numpy().tolist() == [["A1", "d1", "coherence", 1], ["A3", "d1", "fluency", 3]]


@pytest.mark.parametrize(
    ("row", "told"),
    [
        ("A1,d1,Does the content make sense?,2,1", "line 2: the rating 2.* is not on the scale 0–1"),
        ("A1,d1,Is it nice?,1,1", "the question 'Is it nice[?]' is not known"),
    ],
)
def test_a_wrong_rating(tmp_path, row, told):
    write_ratings(tmp_path, {"calibration_reviewer_name": [row]})
    with pytest.raises(Problem, match=told):
        read_ratings(tmp_path)


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A server on this machine that stands for the authors' repository, with two small files pinned."""
    root = tmp_path / "home"
    (root / "paper_data").mkdir(parents=True)
    pinned = {}
    for name in ("one.json", "two.json"):
        (root / "paper_data" / name).write_text(name, encoding="utf-8")
        pinned[name] = (f"paper_data/{name}", hashlib.sha256(name.encode()).hexdigest())
    monkeypatch.setattr(released, "FILES", pinned)
    asked = []

    class Handler(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            asked.append(self.path)

    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=root))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", root, asked
    server.shutdown()
    thread.join()
    server.server_close()


def test_fetch_brings_the_pinned_files_once(home, tmp_path):
    address, _, asked = home
    paths = fetch(tmp_path / "data", address)
    assert [path.read_text(encoding="utf-8") for path in paths] == ["one.json", "two.json"]
    paths[1].write_text("broken", encoding="utf-8")
    asked.clear()
    fetch(tmp_path / "data", address)
    assert asked == ["/paper_data/two.json"]
    assert paths[1].read_text(encoding="utf-8") == "two.json"


def test_fetch_keeps_nothing_that_is_not_the_pinned_file(home, tmp_path):
    address, root, _ = home
    (root / "paper_data" / "two.json").write_text("another", encoding="utf-8")
    with pytest.raises(Problem, match=r"two\.json: its SHA-256 is .*, not the pinned"):
        fetch(tmp_path / "data", address)
    assert [path.name for path in (tmp_path / "data").iterdir()] == ["one.json"]


def test_fetch_says_what_cannot_be_downloaded(home, tmp_path):
    address, root, _ = home
    (root / "paper_data" / "one.json").unlink()
    with pytest.raises(Problem, match=r"one\.json: it cannot be downloaded .*404"):
        fetch(tmp_path / "data", address)


def test_the_address_names_the_pinned_commit():
    repository, commit = "isaac-chung/cross-lingual-stability-judges", "ea3bfc524184953aeded99d35d92c660a9b17a80"
    assert f"https://raw.githubusercontent.com/{repository}/{commit}" == released.HOME


def test_the_release(release):
    verify(release)
    dialogues = read_dialogues(release)
    assert len(dialogues) == 2765
    assert {dialogue.model for dialogue in dialogues} == set(released.MODELS.values())
    assert remarks(dialogues)[0].startswith("et: 697 of 697")
    assert sum(len(dialogue.turns) < 2 for dialogue in dialogues) == 44


def test_the_rated_dialogues_are_those_of_one_generator(release):
    rated = read_annotated(release)
    assert len(rated) == 120 and {dialogue.model for dialogue in rated} == {"gpt-4.1-mini"}
    assert {dialogue.dialogue_id for dialogue in rated} == set(read_ratings(release)["dialogue"])
    assert remarks(rated) == []
    texts = [
        {tuple(turn.text for turn in dialogue.turns) for dialogue in dialogues}
        for dialogues in (rated, read_dialogues(release, ["et"]))
    ]
    assert len(texts[0] & texts[1]) == 27


def test_the_ratings_are_those_inside_the_annotated_dialogues(release):
    file = json.loads((release / "combined_et_with_annotations.json").read_text(encoding="utf-8"))
    inside = {
        (label["annotator"], item["conversation_id"], question, label["value"])
        for item in file["gpt-4.1-mini"]
        for question in ("coherence", "fluency")
        for label in item["_metadata"][f"{question}_annotations"]
    }
    assert set(read_ratings(release).itertuples(index=False, name=None)) == inside


def hub_rows(language, identifier, texts):
    metadata = {"language": language, "model": "gpt-4.1-mini", "n_messages": len(texts), "n_agents": 1} | PARAMETERS
    return [
        {
            "conversation_id": identifier,
            "message_id": number,
            "from_name": ("Klaus", "Anna")[number % 2],
            "from_type": ("agent", "customer")[number % 2],
            "message": text,
        }
        | metadata
        for number, text in enumerate(texts)
    ]


def test_the_hubs_messages_are_put_together_again(tmp_path):
    rows = [
        *hub_rows("fi", "f-1", ["Hei!", "Hei hei!", "Kuinka voin auttaa?"]),
        *hub_rows("et", "e-1", ["Tere!", "Tere!"]),
    ]
    # Out of order, and one dialogue in two files.
    pd.DataFrame(rows[2:]).to_parquet(tmp_path / "fi-00000-of-00002.parquet")
    pd.DataFrame([rows[1], rows[0], *hub_rows("fi", "f-2", ["Hei!"])]).to_parquet(
        tmp_path / "fi-00001-of-00002.parquet"
    )
    found = read_hub(tmp_path)
    assert [(d.language, d.index, d.dialogue_id) for d in found] == [
        ("et", 0, "e-1"),
        ("fi", 0, "f-1"),
        ("fi", 1, "f-2"),
    ]
    assert [turn.text for turn in found[1].turns] == ["Hei!", "Hei hei!", "Kuinka voin auttaa?"]
    assert found[1].parameters == PARAMETERS | {"n_messages": 3, "n_agents": 1} and found[1].model == "gpt-4.1-mini"


def test_the_hubs_dialogues_are_measured_by_one_command(tmp_path, monkeypatch, capsys):
    def download(name, *, revision, local_dir, **_):
        texts = ["Hei! Kuinka voin auttaa?", "Lamppu on rikki.", "Lähetämme uuden lampun."]
        rows = [row for i in range(2) for row in hub_rows("fi", f"f-{i}", texts)]
        pd.DataFrame(rows).to_parquet(f"{local_dir}/{revision[:4]}.parquet")

    hub = types.ModuleType("huggingface_hub")
    hub.snapshot_download = download
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    assert rebuild.main(["--hub", str(tmp_path), "b" * 40]) == 0
    assert capsys.readouterr().out.strip().endswith(str(tmp_path / "hub_metrics.csv"))
    table = pd.read_csv(tmp_path / "hub_metrics.csv")
    assert table["n_turns"].tolist() == [3, 3] and set(table["revision"]) == {"b" * 40}
    assert table["self_bleu_whole"].tolist() == [1, 1], "two dialogues of the same words"
    assert rebuild.main(["--hub", str(tmp_path), "main"]) == 2 and "is no commit" in capsys.readouterr().err


def test_what_is_wrong_with_the_hubs_files_is_said(tmp_path):
    with pytest.raises(Problem, match="no Parquet file"):
        read_hub(tmp_path)
    path = tmp_path / "fi.parquet"
    rows = pd.DataFrame(hub_rows("fi", "f-1", ["Hei!", "Hei!", "Hei!"]))
    rows.drop(index=1).to_parquet(path)
    with pytest.raises(Problem, match=r"dialogue f-1 .*not numbered"):
        read_hub(tmp_path)
    rows.drop(columns="channel").to_parquet(path)
    with pytest.raises(Problem, match="no column `channel`"):
        read_hub(tmp_path)
    path.write_bytes(b"PAR")
    with pytest.raises(Problem, match="not readable as Parquet"):
        read_hub(tmp_path)


def test_the_hub_is_asked_for_one_commit(tmp_path, monkeypatch):
    with pytest.raises(Problem, match="is no commit"):
        fetch_hub(tmp_path, "main")
    asked = {}
    hub = types.ModuleType("huggingface_hub")
    hub.snapshot_download = lambda name, **how: asked.update(how, name=name)
    monkeypatch.setitem(sys.modules, "huggingface_hub", hub)
    fetch_hub(tmp_path, "a" * 40)
    assert asked["name"] == released.HUB_DATASET and asked["revision"] == "a" * 40 and asked["repo_type"] == "dataset"
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(Problem, match="huggingface_hub is not installed"):
        fetch_hub(tmp_path, "a" * 40)
