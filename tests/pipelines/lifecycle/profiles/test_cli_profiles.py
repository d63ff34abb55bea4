"""Profiles: imported, shown, and epoch-time trained, scored and asked on the command line."""

import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.pipelines.lifecycle.profile_tables import ImportSettings, import_profiles, parse_samples
from jobcast.traces.profiles import read_profiles, write_profiles
from tests.shared import refused

NAME = "epoch-time"


def test_import_and_show(shell, run, tmp_path):
    out = tmp_path / "p.sqlite"
    first = shell.works("profiles", "import", run.throughputs, "--out", out)
    assert first.out.startswith(f"{out}: 54 rows; models ResNet-18, LM, Transformer")
    assert "1 rows without a batch size were left out" in first.err
    again = shell.works("profiles", "import", run.throughputs, "--out", out)
    assert f"{out}: 0 rows added, 54 replaced" in again.out
    table = shell.works("profiles", "show", out, "--model", "LM", "--gpu-type", "k80").out.splitlines()
    assert table[1].split() == ["model", "batch", "size", "GPU", "type", "1", "2", "4"]
    assert [line.split()[:3] for line in table[2:]] == [["LM", str(size), "k80"] for size in (16, 64, 256)]
    told = shell.json("profiles", "show", out)
    assert told["rows"] == len(told["profiles"]) == 54


def test_a_version_is_scored_on_another_application(shell, run):
    told = shell.json("evaluate", f"{NAME}@challenger", "--trace", run.later)
    assert (told["jobs"], told["points"], told["configurations"]) == (1, 6, 12)
    assert told["mape"] < 0.1 < told["baselines"]["linear"]
    assert set(told["mape_by_gpu_type"]) == {"v100", "k80"}
    assert set(told["mape_by_model"]) == {"new"}
    assert 0 <= told["coverage_90"] <= 1
    assert told["left_out"] == []
    assert told["overlap_allowed"] is False


def test_what_it_was_trained_on_is_left_out_by_twins(shell, run):
    told = shell.works("evaluate", NAME, "--trace", run.profiles, "--points", "2", "--set", "draws=2")
    assert "each was forecast by a twin that was trained without it" in told.err
    assert "2 points a model and GPU type by middle-wide: 3 jobs, 12 points, 42 configurations left out" in told.out
    assert "points drawn at random (2 times)" in told.out
    allowed = shell.works("evaluate", NAME, "--trace", run.profiles, "--allow-overlap")
    assert "warning: the version was trained on some of these models" in allowed.out


def test_jobs_by_batch_size(shell, run):
    words = ("--trace", run.later, "--set", "job=batch-size", "--points", "2")
    told = shell.json("evaluate", NAME, *words)
    assert (told["jobs"], told["points"], told["configurations"]) == (3, 12, 6)


def test_a_completed_table(shell, run, tmp_path):
    out = tmp_path / "whole.sqlite"
    words = ("--trace", run.few, "--set", "model=new", "--set", "gpus=4", "--out", out)
    told = shell.json("predict", NAME, *words)
    assert len(told["profiles"]) == 3 * 2 * 4
    whole, few, truth = (read_profiles(path) for path in (out, run.few, run.later))
    assert len(whole) == 24
    asked = ["new"] * 3, [16, 64, 256], ["v100", "k80"], 4
    known, made, true = (table.epoch_s(*asked) for table in (few, whole, truth))
    assert (made[known < float("inf")] == known[known < float("inf")]).all()
    measured = true < float("inf")
    assert abs(made[measured] / true[measured] - 1).mean() < 0.1
    shown = shell.works("predict", f"{NAME}:1", "--trace", run.few, "--set", "batch_size=64", "--set", "gpu_type=k80")
    assert len(shown.out.splitlines()) == 2 + 4


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("train", "--from", "0"), "--from: does not go with the predictor epoch-time"),
        (("evaluate", "--prefix", "0.2"), "--prefix: goes with the predictor accuracy-curve"),
        (("evaluate", "--set", "model=A"), "epoch-time: setting model: not known; known: batch, draws, job, plan"),
        (("evaluate", "--set", "plan=best"), "plan best: is not known"),
        (("evaluate", "--set", "job=day"), "setting job must be model or batch-size, got day"),
        (("evaluate", "--set", "draws=x"), "setting draws must be a whole number >= 0, got x"),
        (("evaluate", "--points", "4"), "Invalid value for '--points'"),
        (("predict", "--set", "model=unheard"), "model unheard has no profile"),
        (("predict", "--set", "gpus=many"), "setting gpus must be a whole number >= 1, got many"),
        (("predict", "--set", "speed=1"), "setting speed: not known; known: batch, batch_size,"),
        (("predict", "--at", "0"), "--at: does not go with the predictor epoch-time"),
    ],
)
def test_mistakes(shell, run, words, said):
    command, *more = words
    assert said in shell.refuses(command, NAME, "--trace", run.few, *more)


def test_options_of_epoch_times_and_other_predictors(shell, run):
    for words in (("evaluate", "new-load", "--points", "2"), ("predict", "new-load", "--at", "0", "--out", "x.csv")):
        assert f"{words[-2]}: goes with the predictor epoch-time" in shell.refuses(*words, "--trace", run.few)


STEPS = "app,num_nodes,num_replicas,local_bsz,step_time,sync_time\n"


def test_throughputs_by_hand(csv, tmp_path):
    """LM has 59,675 samples: 59,675 / 5 steps of 1/100 s."""
    path = csv("v100,LM,5,1,100", "k80,LM,5,1,50", header="gpu_type,model,batch_size,gpus,steps_per_second")
    told = import_profiles([path], tmp_path / "p.csv", ImportSettings())
    assert read_profiles(tmp_path / "p.csv").frame.rows() == [
        ("LM", 5, "v100", 1, pytest.approx(119.35)),
        ("LM", 5, "k80", 1, pytest.approx(238.7)),
    ]
    assert told["inputs"][str(path)]["format"] == "throughputs"
    told = import_profiles([path], tmp_path / "k.csv", ImportSettings(gpu_type="k80"))
    assert (told["rows"], told["gpu_types"]) == (1, ["k80"])


def test_step_times_by_hand(tmp_path):
    """cifar10: 50,000 samples in steps of 2 x 50 of 0.1 s are 50 s; two measurements are averaged; nodes count."""
    path = tmp_path / "steps.csv"
    path.write_text(f"{STEPS}cifar10,1,2,50,0.1,0.05\ncifar10,1,2,50,0.3,0.05\ncifar10,2,2,50,0.5,0.05\n")
    told = import_profiles([path], tmp_path / "p.parquet", ImportSettings())
    assert read_profiles(tmp_path / "p.parquet").frame.rows() == [("cifar10", 100, "t4", 2, pytest.approx(100.0))]
    assert "1 steps over several nodes were left out" in told["notes"][0]
    told = import_profiles([path], tmp_path / "q.csv", ImportSettings("step-times", {"cifar10": 100}, "v100"))
    assert read_profiles(tmp_path / "q.csv").frame.rows() == [("cifar10", 100, "v100", 2, pytest.approx(0.2))]


def test_merging_counts(tmp_path):
    first, second, out = (tmp_path / name for name in ("a.csv", "b.parquet", "out.db"))
    write_profiles([("A", 1, "t4", 1, 5.0), ("A", 1, "t4", 2, 3.0)], first)
    write_profiles([("A", 1, "t4", 2, 2.5), ("B", None, "t4", 1, 9.0)], second)
    assert import_profiles([first], out, ImportSettings())["added"] == 2
    told = import_profiles([second], out, ImportSettings())
    assert (told["added"], told["replaced"]) == (1, 1)
    assert read_profiles(out).epoch_s(["A", "B"], [1, 4], ["t4"], 2).tolist() == [[[5.0, 2.5]], [[9.0, float("inf")]]]
    told = import_profiles([first, second], tmp_path / "both.csv", ImportSettings())
    assert told["rows"] == 3
    assert "1 rows were in several sources" in told["notes"][0]


def test_imports_that_are_refused(csv, tmp_path):
    steps = tmp_path / "steps.csv"
    steps.write_text(f"{STEPS}unheard,1,1,8,0.1,0.01\n")
    with pytest.raises(ConfigError, match="unheard, whose samples an epoch are not known; add unheard=N"):
        import_profiles([steps], tmp_path / "p.csv", ImportSettings())
    steps.write_text(f"{STEPS}cifar10,2,2,8,0.1,0.01\n")
    with pytest.raises(TraceError, match="no step was measured on one node"):
        import_profiles([steps], tmp_path / "p.csv", ImportSettings())
    with pytest.raises(TraceError, match="of no format that is known"):
        import_profiles([csv("1,2", header="a,b")], tmp_path / "p.csv", ImportSettings())
    refused(ConfigError, "--format guess", import_profiles, [steps], tmp_path / "p.csv", ImportSettings("guess"))
    assert not (tmp_path / "p.csv").exists()
    for pair in ("bert", "bert=", "bert=0", "bert=many"):
        refused(ConfigError, "write --samples MODEL=N", parse_samples, [pair])
