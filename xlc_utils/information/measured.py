"""Verifiers that are measured and score nothing: what takes long or costs money is tried on a part of what is known."""

from __future__ import annotations

import pandas as pd

from xlc_utils.information.evaluator import model_verifier, verifier_of
from xlc_utils.information.ruler import is_development, judged, one_a_question, ruler_table, units_table

UNITS = ("claim", "answer")


def further(run, pairs: pd.DataFrame, verifiers: dict[str, object]) -> pd.DataFrame:
    """What `measured_verifiers` names, which scores nothing in the run, beside the run's own verifiers.

    Args:
        run: the notebook's run.
        pairs: rows of `pairs_of`; of these one known answer a question is taken (`ruler.one_a_question`).
        verifiers: the run's own, as `evaluator_of` fitted them.

    Returns:
        The columns of `ruler.ruler_table`, of the held-out half; no rows where nothing is to be measured.
    """
    some = one_a_question(pairs)
    development = some["prompt_id"].map(is_development)
    more = {name: verifier_of(run, name, some[development]) for name in run.params.measured_verifiers}
    if not more:
        return pd.DataFrame()
    found = {name: judged(some[~development], verifier) for name, verifier in {**verifiers, **more}.items()}
    return ruler_table(found, run.params.bootstrap_samples, run.params.seed)


def is_toy(run) -> bool:
    """Whether a verifier of these tables, or what made their texts, is a toy, so that they have to say so."""
    return run.toy or any(run.is_toy(name) for name in run.params.measured_verifiers)


def units(run, held_out: pd.DataFrame) -> pd.DataFrame:
    """The two units for each model that verifies; see `ruler.units_table`.

    Args:
        run: the notebook's run.
        held_out: of `pairs_of`; models among `measured_verifiers` are asked about one known answer a question of these.
    """
    samples, seed, tables = run.params.bootstrap_samples, run.params.seed, []
    for names, pairs in (
        (run.params.claim_verifiers, held_out),
        (run.params.measured_verifiers, one_a_question(held_out)),
    ):
        for name in (n for n in names if n in run.models.models):
            by_unit = {unit: model_verifier(run, name, unit) for unit in UNITS}
            found = units_table(pairs, by_unit, samples, seed)
            found.insert(0, "verifier", name)
            tables.append(found)
    return pd.concat(tables, ignore_index=True) if tables else pd.DataFrame()
