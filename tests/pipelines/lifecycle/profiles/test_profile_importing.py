"""Measurements of three kinds become profiles: values by hand, keys replaced, mistakes named."""

import pytest

from jobcast.domain.errors import ConfigError, TraceError
from jobcast.pipelines.lifecycle.profiles.tables import ImportSettings, import_profiles, parse_samples
from jobcast.traces.profiles import read_profiles, write_profiles

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


def test_mistakes(csv, tmp_path):
    steps = tmp_path / "steps.csv"
    steps.write_text(f"{STEPS}unheard,1,1,8,0.1,0.01\n")
    with pytest.raises(ConfigError, match="unheard, whose samples an epoch are not known; add unheard=N"):
        import_profiles([steps], tmp_path / "p.csv", ImportSettings())
    steps.write_text(f"{STEPS}cifar10,2,2,8,0.1,0.01\n")
    with pytest.raises(TraceError, match="no step was measured on one node"):
        import_profiles([steps], tmp_path / "p.csv", ImportSettings())
    with pytest.raises(TraceError, match="of no format that is known"):
        import_profiles([csv("1,2", header="a,b")], tmp_path / "p.csv", ImportSettings())
    with pytest.raises(ConfigError, match="--format guess"):
        import_profiles([steps], tmp_path / "p.csv", ImportSettings("guess"))
    assert not (tmp_path / "p.csv").exists()
    for pair in ("bert", "bert=", "bert=0", "bert=many"):
        with pytest.raises(ConfigError, match="write --samples MODEL=N"):
            parse_samples([pair])
