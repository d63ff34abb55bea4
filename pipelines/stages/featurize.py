"""Stage featurize: one row a pool and grid instant, from the beginning of training to the end of the test."""

from jobcast.features.corpus import build_corpus
from jobcast.pipelines.stages.context import Context
from jobcast.traces.history import pool_histories
from jobcast.traces.splits import pools_to_learn_from


def work(context: Context, item: str = "") -> None:
    """Build the corpus of the run; rows at t know nothing after t."""
    params = context.params.featurize
    trace, (split, _) = context.trace(), context.split()
    training = trace.between(split.train_from_s, split.train_until_s)
    names = pools_to_learn_from(training, params.min_train_jobs)
    # Not by the recipes' own function: this stage would hang on the code of all models.
    histories = {name: history for name, history in pool_histories(trace).items() if name in names}
    with context.console.progress("featurize") as step:
        corpus = build_corpus(
            histories, split.train_from_s, split.test_until_s, params.horizons_min, params.step_s, progress=step
        )
    context.corpus.parent.mkdir(parents=True, exist_ok=True)
    corpus.save(context.corpus)
    rows, horizons, columns = corpus.X.shape
    context.write_receipt("featurize", {"rows": rows, "horizons": horizons, "columns": columns})
    context.console.note(f"featurize: {rows:,} rows x {horizons} horizons x {columns} features of {len(names)} pools")
