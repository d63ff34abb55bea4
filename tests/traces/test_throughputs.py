"""Tables of training jobs; expectations by hand from the texts here."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobcast.domain.errors import TraceError
from jobcast.traces.throughputs import SAMPLES, read_courses, read_datasets, read_throughputs, write_courses

HEADER = "gpu_type,model,batch_size,gpus,steps_per_second\n"


def written(folder, text, name="table.csv"):
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_rates_of_one_gpu_type_without_those_that_are_not_available(tmp_path):
    rows = "v100,LM,20,1,4\nv100,LM,10,1,8\nv100,LM,40,1,0\nk80,LM,10,1,2\nv100,LM,10,2,12.5\nv100,A3C,,1,3\n"
    path = written(tmp_path, HEADER + rows)
    table = read_throughputs(path)
    assert table.gpu_type == "v100"
    assert table.rates == {("LM", 1): {10: 8.0, 20: 4.0}, ("LM", 2): {10: 12.5}}
    assert list(table.rates["LM", 1]) == [10, 20]
    assert read_throughputs(path, "k80").rates == {("LM", 1): {10: 2.0}}


def test_rows_without_a_batch_size_or_a_rate_are_of_no_use_and_no_harm(tmp_path):
    path = written(tmp_path, HEADER + "v100,A3C,,1,3\nv100,A3C,,1,4\nv100,LM,10,1,\nv100,LM,20,1,4\n")
    assert read_throughputs(path).rates == {("LM", 1): {20: 4.0}}


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("v100,LM,10,1,fast\n", "row 2, column steps_per_second: must be a number, got 'fast'"),
        ("v100,LM,10,1,-1\n", "row 2, column steps_per_second: must be a number >= 0, got -1.0"),
        ("v100,LM,10,1,1\nv100,LM,9.5,1,1\n", "row 3, column batch_size: must be a whole number >= 1, got 9.5"),
        ("v100,LM,10,0,1\n", "row 2, column gpus: must be a whole number >= 1, got 0.0"),
        ("v100,LM,10,,1\n", "row 2, column gpus: must be a whole number >= 1, got nothing"),
        ("v100,LM,10,1,nan\n", "row 2, column steps_per_second: must be a number >= 0, got nan"),
        ("v100,LM,inf,1,1\n", "row 2, column batch_size: must be a whole number >= 1, got inf"),
        ("v100,LM,1e300,1,1\n", "row 2, column batch_size: must be a whole number >= 1, got 1e"),
        ("k80,LM,10,nan,1\nv100,LM,10,1,1\n", "row 2, column gpus: must be a whole number >= 1, got nan"),
        ("v100,,10,1,1\n", "row 2, column model: must name a model, got nothing"),
        ("v100,LM,10,1,1\nv100,LM,10,1,2\n", "row 2, column model: is there twice for v100"),
        ("k80,LM,10,1,1\np100,LM,10,1,1\n", "no GPU type v100; choose from k80, p100"),
        ("", "only a header, no rows"),
    ],
)
def test_a_bad_throughput_is_named(tmp_path, rows, said):
    path = written(tmp_path, HEADER + rows)
    with pytest.raises(TraceError, match=said) as caught:
        read_throughputs(path)
    assert str(caught.value).startswith(str(path))
    assert "\n" not in str(caught.value)


def test_a_missing_column_is_named(tmp_path):
    with pytest.raises(TraceError, match="columns gpus, steps_per_second missing"):
        read_throughputs(written(tmp_path, "gpu_type,model,batch_size\nv100,LM,10\n"))


def test_data_sets_are_laid_over_gavels_five(tmp_path):
    assert SAMPLES["Recommendation"] == 117_907
    sizes = read_datasets(written(tmp_path, "model,samples\nViT,1000\nLM,5\n"))
    assert sizes == {**SAMPLES, "ViT": 1000, "LM": 5}
    with pytest.raises(TraceError, match=r"row 3, column samples: must be a whole number >= 1, got 0\.0"):
        read_datasets(written(tmp_path, "model,samples\nViT,1000\nLM,0\n"))
    with pytest.raises(TraceError, match="row 2, column model: must name a model, got nothing"):
        read_datasets(written(tmp_path, "model,samples\n,1000\n"))
    with pytest.raises(TraceError, match="row 2, column model: is there twice, got 'ViT'"):
        read_datasets(written(tmp_path, "model,samples\nViT,1000\nViT,5\n"))


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("a,1,32\n", "row 2, column epoch: job a must begin at epoch 0, got 1"),
        ("a,0,32\na,5,64\na,5,128\n", "row 4, column epoch: epochs of job a must ascend, got 5"),
        ("a,0,32\nb,0,16\na,-1,64\n", "row 4, column epoch: must be a whole number >= 0, got -1.0"),
        ("a,0,32\na,,64\n", "row 3, column epoch: must be a whole number >= 0, got nothing"),
        ("a,nan,32\n", "row 2, column epoch: must be a whole number >= 0, got nan"),
        ("a,0,32\na,1e300,64\n", "row 3, column epoch: must be a whole number >= 0, got 1e"),
        ("a,0,32\na,7,64\na,5,128\n", "row 4, column epoch: epochs of job a must ascend, got 5"),
        ("a,0,0\n", "row 2, column batch_size: must be a whole number >= 1, got 0.0"),
        (",0,32\n", "row 2, column job_id: must name a job, got nothing"),
    ],
)
def test_a_bad_course_is_named(tmp_path, rows, said):
    with pytest.raises(TraceError, match=said):
        read_courses(written(tmp_path, "job_id,epoch,batch_size\n" + rows))


courses = st.dictionaries(
    st.text("abc019-", min_size=1, max_size=4),
    st.tuples(
        st.lists(st.integers(1, 500), max_size=4, unique=True), st.lists(st.integers(1, 9999), min_size=5, max_size=5)
    ).map(lambda drawn: tuple(zip([0, *sorted(drawn[0])], drawn[1][: len(drawn[0]) + 1], strict=True))),
    min_size=1,
    max_size=5,
)


@given(courses)
def test_courses_are_read_as_they_were_written(tmp_path_factory, by_job):
    path = tmp_path_factory.mktemp("courses") / "regimes.csv"
    write_courses(by_job, path)
    assert dict(read_courses(path).by_job) == by_job
