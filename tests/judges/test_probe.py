"""The judge probe: its pairs are what they say they are, and judges of known kinds get the result they should."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from statsmodels.stats.proportion import proportion_confint
from stub_model import StubModel

from xlc_utils.chat.base import Reply
from xlc_utils.chat.offtarget import LanguageDetector
from xlc_utils.judges import judging
from xlc_utils.judges.dialogues import turns_from_json
from xlc_utils.judges.probe import (
    ALL,
    FLAWS,
    RESULT,
    failed,
    marks,
    probe_dialogues,
    probe_languages,
    probe_result,
    read_pairs,
)
from xlc_utils.judges.rubric import KEY, NEEDED, SCALES, conversation, judge_dialogues
from xlc_utils.registry import languages as registry
from xlc_utils.registry.outcomes import Outcome
from xlc_utils.registry.problems import Problem
from xlc_utils.running.run import Run, open_run

LANGUAGES = ["en", "et", "fi", "hu"]
TOPS = {name: float(top) for name, top in SCALES.items()}


@pytest.fixture(scope="module")
def probe(root: Path) -> pd.DataFrame:
    return probe_dialogues(root, LANGUAGES)


@pytest.fixture(scope="module")
def pairs(root: Path) -> dict[tuple[str, str], object]:
    """Every pair by language and id."""
    return {(code, name): pair for code in LANGUAGES for name, pair in read_pairs(root, code).items()}


@pytest.fixture(scope="module")
def detector(root: Path) -> LanguageDetector:
    return LanguageDetector(registry.load(root))


# ---- the pairs --------------------------------------------------------------------------------------------------
def test_there_are_twelve_pairs_of_all_five_flaws_in_each_language(root, probe):
    assert probe_languages(root) == LANGUAGES
    assert set(NEEDED) <= set(probe) and not probe.duplicated(KEY).any()
    assert probe.groupby("language").size().to_dict() == dict.fromkeys(LANGUAGES, 24)
    sound = probe[probe["version"] == "sound"]
    counts = sound.groupby(["language", "flaw"]).size().unstack()
    assert set(counts.columns) == set(FLAWS) and counts.min(axis=None) >= 2


def test_languages_have_the_same_scenarios_flaws_and_turns(pairs):
    english = {name: pair.plan for (code, name), pair in pairs.items() if code == "en"}
    for code in LANGUAGES[1:]:
        assert {name: pair.plan for (c, name), pair in pairs.items() if c == code} == english


def test_dialogues_have_four_to_eight_turns_that_alternate_and_name_two_people(probe):
    for row in probe.itertuples():
        turns = turns_from_json(row.turns)
        assert 4 <= len(turns) <= 8 and all(turn.text.strip() == turn.text != "" for turn in turns)
        assert all(a.sender != b.sender for a, b in pairwise(turns))
        assert len({(turn.sender, turn.name) for turn in turns}) == 2


def test_the_flawed_dialogue_differs_in_the_turns_it_names_and_nowhere_else(probe):
    for _, pair in probe.groupby(["language", "pair"]):
        sound, flawed = (turns_from_json(pair.set_index("version").loc[v, "turns"]) for v in ("sound", "flawed"))
        differ = [number for number, (a, b) in enumerate(zip(sound, flawed, strict=True), 1) if a != b]
        assert " ".join(map(str, differ)) == pair["changed"].iloc[0]
        assert [(t.sender, t.name) for t in sound] == [(t.sender, t.name) for t in flawed]


def test_a_changed_name_is_the_only_change_of_its_turn(pairs):
    """One run of words differs, it is in capitals, and it stands nowhere else in the dialogue."""
    for pair in (p for p in pairs.values() if p.flaw == "name_change"):
        (new,) = pair.flawed
        old, new = pair.sound[new.turn - 1].split(), new.text.split()
        assert len(old) == len(new)
        changed = [(a.strip(".,!"), b.strip(".,!")) for a, b in zip(old, new, strict=True) if a != b]
        assert 1 <= len(changed) <= 2 and all(a.istitle() and b.istitle() for a, b in changed)
        people = f"{pair.agent} {pair.customer}"
        assert all(a in people and b not in people and b not in " ".join(pair.sound) for a, b in changed)


def test_an_illogical_order_is_two_turns_of_one_side_changing_places(pairs):
    for pair in (p for p in pairs.values() if p.flaw == "order"):
        (first, second), texts = pair.changed, [new.text for new in pair.flawed]
        assert texts == [pair.sound[second - 1], pair.sound[first - 1]] and (second - first) % 2 == 0


def test_a_turn_in_the_wrong_language_is_detected_and_says_the_same(pairs, detector):
    found = [(code, name, pair) for (code, name), pair in pairs.items() if pair.flaw == "wrong_language"]
    assert len(found) == 2 * len(LANGUAGES)
    for code, name, pair in found:
        (new,) = pair.flawed
        assert new.language != code and detector.language(new.text, code) == new.language
        assert new.text == pairs[new.language, name].sound[new.turn - 1]


def test_every_other_turn_is_in_the_dialogues_language_or_too_short_to_tell(pairs, detector):
    for (code, name), pair in pairs.items():
        texts = [*pair.sound, *(new.text for new in pair.flawed if new.language is None)]
        found = [detector.language(text, code) for text in texts]
        assert set(found) <= {code, None} and found.count(code) >= 3, (code, name, found)


def test_flaws_lower_what_the_rubric_says_they_lower(pairs):
    lowers = {pair.flaw: pair.lowers for pair in pairs.values()}
    content = dict.fromkeys(("name_change", "other_question", "order"), ("C",))
    assert lowers == content | {"grammar": ("G", "F"), "wrong_language": ("F",)}


# ---- judges of known kinds --------------------------------------------------------------------------------------
def asked(probe: pd.DataFrame, judge) -> pd.DataFrame:
    """The result of a judge that is given a dialogue's row and says its scores, or a `Reply`."""
    rows = {conversation(row.turns): row for row in probe.itertuples()}
    assert len(rows) == len(probe)  # no two dialogues are the same to a judge

    def say(chat):
        said = judge(rows[chat.messages[-1][1]])
        return said if isinstance(said, Reply | str) else reply(said)

    return probe_result(judge_dialogues(StubModel(say, "a-judge"), probe, "{conversation}"), probe)


def reply(scores: dict[str, float]) -> str:
    return json.dumps({name: int(score) for name, score in scores.items()} | {"explanation": ""})


def row_of(result: pd.DataFrame, language: str = ALL, flaw: str = ALL) -> pd.Series:
    (row,) = result[(result["language"] == language) & (result["flaw"] == flaw)].to_dict("records")
    return pd.Series(row)


def lowered(row) -> dict[str, float]:
    """One less, in a flawed dialogue, of just the scores that its flaw concerns."""
    return TOPS | {s: TOPS[s] - 1 for s in row.lowers.split() if row.version == "flawed"}


def test_a_perfect_judge_ranks_every_sound_dialogue_higher(probe):
    result = asked(probe, lowered)
    assert list(result) == RESULT and len(result) == (4 + 1) * (5 + 1)
    assert (result["share"] == 1).all() and not result[["tied", "unread"]].any(axis=None)
    low, high = proportion_confint(12, 12, method="wilson")
    overall = row_of(result)
    assert (overall["n"], overall["scenarios"]) == (48, 12), "48 pairs are 12 scenarios in four languages"
    assert (overall["low"], overall["high"]) == (pytest.approx(low), pytest.approx(high))
    assert failed(result) == {"a-judge": []} and marks(result) == {}


def test_an_inverted_judge_ranks_none_higher(probe):
    result = asked(probe, lambda row: lowered(row._replace(version="sound" if row.version == "flawed" else "flawed")))
    assert (result["share"] == 0).all() and failed(result) == {"a-judge": LANGUAGES}


def test_a_judge_that_gives_all_dialogues_the_same_has_half_and_does_not_pass(probe):
    result = asked(probe, lambda row: TOPS)
    assert (result["tied"] == result["n"]).all() and (result["share"] == 0.5).all() and not result["won"].any()
    assert failed(result) == {"a-judge": LANGUAGES}
    assert marks(result) == {"a-judge": "a-judge (failed the probe in en, et, fi, hu)"}


def test_a_judge_that_fails_in_one_language_is_marked_with_it(probe):
    """Right in 12, 10, 10 and 6 of the 12 pairs: over all languages 38 of 48, and by chance in Hungarian."""
    right = dict(zip(LANGUAGES, (12, 10, 10, 6), strict=True))
    number = {name: i for i, name in enumerate(dict.fromkeys(probe["pair"]))}

    def judge(row):
        wrong = number[row.pair] >= right[row.language]
        return lowered(row._replace(version={"sound": "flawed", "flawed": "sound"}[row.version]) if wrong else row)

    result = asked(probe, judge)
    assert {code: row_of(result, code)["won"] for code in LANGUAGES} == right and row_of(result)["won"] == 38
    assert failed(result) == {"a-judge": ["hu"]} and marks(result) == {"a-judge": "a-judge (failed the probe in hu)"}
    assert row_of(result)["low"] < row_of(result)["share"] - 0.2, "no narrower than for 12 scenarios"


@pytest.mark.parametrize(("won", "fails"), [(9, LANGUAGES), (10, [])])
def test_of_twelve_pairs_ten_must_be_won(probe, won, fails):
    losing = list(dict.fromkeys(probe["pair"]))[won:]
    flip = {"sound": "flawed", "flawed": "sound"}
    result = asked(probe, lambda r: lowered(r._replace(version=flip[r.version]) if r.pair in losing else r))
    assert failed(result) == {"a-judge": fails}


def test_pairs_that_cannot_be_read_are_not_won(probe):
    """Four of four would do, were the eight left out of which nothing came."""
    read = list(dict.fromkeys(probe["pair"]))[:4]
    result = asked(probe, lambda row: reply(lowered(row)) if row.pair in read else "No scores today.")
    assert (row_of(result, "hu")["won"], row_of(result, "hu")["n"], row_of(result, "hu")["unread"]) == (4, 4, 8)
    assert row_of(result, "hu")["low"] > 0.5 and failed(result) == {"a-judge": LANGUAGES}


def test_ties_count_half(probe):
    """Perfect about grammar (8 pairs), blind to all else (40): 8 + 20 of 48."""
    result = asked(probe, lambda row: lowered(row) if row.flaw == "grammar" else TOPS)
    overall = row_of(result)
    assert (overall["won"], overall["tied"], overall["n"], overall["share"]) == (8, 40, 48, 28 / 48)
    low, high = proportion_confint(7, 12, method="wilson")
    assert (overall["low"], overall["high"]) == (pytest.approx(low), pytest.approx(high))
    assert failed(result) == {"a-judge": LANGUAGES} and row_of(result, flaw="grammar")["share"] == 1


def test_only_the_scores_that_the_flaw_concerns_are_compared(probe):
    def beside(row):
        spared = set(SCALES) - set(row.lowers.split())
        return TOPS | {s: 0 for s in spared if row.version == "flawed"}

    assert (asked(probe, beside)["share"] == 0.5).all()


def test_of_two_scores_their_mean_as_shares_of_their_scales_is_compared(probe):
    """In grammar one point of F (of 3) weighs more than one of G (of 4)."""
    frame = probe[probe["flaw"] == "grammar"]
    worse_g = {"sound": {"G": 3, "R": 4, "C": 3, "F": 3}, "flawed": {"G": 4, "R": 4, "C": 3, "F": 2}}
    assert row_of(asked(frame, lambda row: worse_g[row.version]))["share"] == 1


@pytest.mark.parametrize("sign", [1, -1], ids=["longer", "shorter"])
def test_a_judge_that_only_looks_at_length_does_not_pass(probe, sign):
    lengths = probe.assign(length=[sign * len(conversation(turns)) for turns in probe["turns"]])
    ranks = lengths.groupby(["language", "pair"])["length"].rank() - 1  # ties: .5 each
    scores = probe[KEY].assign(judge="a-judge", **dict.fromkeys(SCALES, ranks))
    assert failed(probe_result(scores, probe)) == {"a-judge": LANGUAGES}


def test_judges_at_random_hardly_ever_pass(probe):
    """In a language at most 2.5% should, fewer as ties widen the interval; in all four none."""
    rng = np.random.default_rng(0)
    drawn = [
        probe[KEY].assign(judge=f"judge-{i}", **{s: rng.integers(0, top + 1, len(probe)) for s, top in SCALES.items()})
        for i in range(300)
    ]
    result = probe_result(pd.concat(drawn), probe)
    overall = result[(result["language"] == ALL) & (result["flaw"] == ALL)]
    assert overall["share"].mean() == pytest.approx(0.5, abs=0.02)
    missed = failed(result)
    assert sum(len(LANGUAGES) - len(codes) for codes in missed.values()) <= 0.025 * 300 * len(LANGUAGES)
    assert all(missed.values())


def test_replies_without_scores_are_counted_and_decide_nothing(probe):
    """Prose about each flawed Estonian dialogue, a refusal of one sound Finnish one: 13 pairs are unread."""

    def judge(row):
        if row.language == "et" and row.version == "flawed":
            return "A fine dialogue."
        if row.dialogue_id == "kettle-sound" and row.language == "fi":
            return Reply("", Outcome.REFUSED, "content_filter")
        return lowered(row)

    result = asked(probe, judge)
    assert (result["n"] == result["won"]).all()
    estonian, finnish, overall = row_of(result, "et"), row_of(result, "fi"), row_of(result)
    assert (estonian["n"], estonian["unread"]) == (0, 12) and np.isnan([estonian["share"], estonian["low"]]).all()
    assert (finnish["n"], finnish["unread"]) == (11, 1) and (overall["n"], overall["unread"]) == (35, 13)
    assert overall["share"] == 1 and failed(result) == {"a-judge": ["et"]}


def test_a_judge_that_is_never_read_does_not_pass(probe):
    result = asked(probe, lambda row: "no idea")
    assert (result["unread"] > 0).all() and not result["n"].any() and failed(result) == {"a-judge": LANGUAGES}


def test_judges_keep_their_order_and_row_order_does_not_matter(probe):
    frames = [probe[KEY].assign(judge=judge, **TOPS) for judge in ("z", "a")]
    result = probe_result(pd.concat(frames), probe)
    assert list(dict.fromkeys(result["judge"])) == list(failed(result)) == ["z", "a"]
    assert list(dict.fromkeys(result["flaw"])) == [*FLAWS, ALL]
    shuffled = pd.concat([frame.sample(frac=1, random_state=1) for frame in frames])
    pd.testing.assert_frame_equal(probe_result(shuffled, probe), result)


def test_scores_of_other_dialogues_are_refused(probe):
    scores = probe[KEY].assign(judge="a-judge", **TOPS).replace({"kettle-sound": "seed0-00001"})
    with pytest.raises(Problem, match="seed0-00001 is none of its dialogues"):
        probe_result(scores, probe)


# ---- what may be wrong with a file ------------------------------------------------------------------------------
BROKEN = {
    "another language": ('language: "et"', 'language: "fi"', "is `fi`; write `et`"),
    "no such flaw": ("flaw: grammar", "flaw: grammer", "'grammer' is not allowed here"),
    "no such score": ("lowers: [G, F]", "lowers: [G, X]", "'X' is not allowed here"),
    "no such turn": ("{turn: 4, text", "{turn: 7, text", "there is no turn 7 in `sound`; name one of 1 to 6"),
    "unknown key": ("opens: agent", "begins: agent", "there is no key `begins`"),
    "no scores": ("lowers: [G, F]", "lowers: []", "`lowers` or `flawed` is empty"),
    "a score twice": ("lowers: [G, F]", "lowers: [G, G]", "names something twice"),
    "language missing": (', language: "en"', "", "`language` of turn 4 does not fit `flaw`"),
    "another plan": ("lowers: [G, F]", "lowers: [G]", "are not those of English; make them the same"),
    "a pair missing": ("  kettle:", "  toaster:", "this file has no pair `kettle`"),
    "an unchanged turn": ("Aitäh, Rasmus!", "Aitäh, Kristjan!", "turn 4 is the same in both dialogues"),
    "an order that is none": ('{turn: 2, text: "Siis on', '{turn: 2, text: "Nii on', "do not only change places"),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN)
def test_what_is_wrong_with_a_file_is_said(project, change):
    old, new, sentence = change
    path = project / "params/known_answers/judge_probe/et.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(Problem) as raised:
        read_pairs(project, "et")
    assert sentence in str(raised.value) and "params/known_answers/judge_probe/et.yaml" in str(raised.value)


def test_a_language_without_a_file_is_said(project):
    with pytest.raises(Problem, match=r"judge_probe/sv\.yaml: there is no such file"):
        probe_dialogues(project, ["sv"])


# ---- in a run ---------------------------------------------------------------------------------------------------
def opened(project: Path, judges: list[str]) -> Run:
    given = {"run_name": "probe", "seed": 3, "judges": judges[:1], "ablation_judges": judges[1:]}
    return open_run(given, "06_judge_stability")


def test_a_run_asks_every_judge_and_keeps_its_replies(project, probe, monkeypatch):
    run = opened(project, ["gpt-5-mini", "gpt-4.1-mini"])
    rows = {conversation(row.turns): row for row in probe.itertuples()}

    def perfect(chat):
        return reply(next(lowered(row) for text, row in rows.items() if text in chat.messages[-1][1]))

    stubs = {"gpt-5-mini": StubModel(perfect, "gpt-5-mini"), "gpt-4.1-mini": StubModel(lambda _: "?", "gpt-4.1-mini")}
    monkeypatch.setattr(run, "chat", stubs.__getitem__)
    result = judging.probe_all(run)
    assert failed(result) == {"gpt-5-mini": [], "gpt-4.1-mini": LANGUAGES}
    assert stubs["gpt-5-mini"].sampling.seed == 3 and len(stubs["gpt-4.1-mini"].asked) == 96
    kept = run.read("judge_probe", "gpt-4.1-mini")
    assert len(kept) == 96 and set(kept["outcome"]) == {"unparsed"}
    (counts,) = run.finish().query("table == 'judge_probe/gpt-4.1-mini'").to_dict("records")
    assert counts["n"] == counts["unparsed"] == 96


def test_without_judges_nothing_is_asked():
    result = judging.probe_all(SimpleNamespace(params=SimpleNamespace(judges=())))
    assert result.empty and list(result) == RESULT and failed(result) == marks(result) == {}
