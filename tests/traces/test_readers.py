import gzip
import zipfile
from importlib.metadata import EntryPoint, entry_points

import polars as pl
import pytest

from jobcast.domain.errors import ConfigError, JobcastError, TraceError
from jobcast.traces import readers
from jobcast.traces.check import Place
from jobcast.traces.readers import format_names, read_sources, read_trace, reader_for, reader_named
from jobcast.traces.readers.canonical import CanonicalReader
from jobcast.traces.readers.reading import Unfit, leave_out, without_contradictions
from tests.shared import refused


class ShoutingReader(CanonicalReader):
    """Another package's format: canonical rows after a line that shouts."""

    name = "shout"

    def recognises(self, path, head):
        return head.startswith(b"JOBS!")

    def read(self, sources, timezone=None, strict=False):
        path = sources[0]
        rest = path.with_name("rest.csv")
        rest.write_text(path.read_text().partition("\n")[2])
        return super().read([rest], timezone, strict)


@pytest.fixture
def plugin(monkeypatch):
    """Puts an entry point beside those that are installed."""
    installed, load = entry_points(group="jobcast.readers"), EntryPoint.load

    def install(name, value):
        entry = EntryPoint(name, value, "jobcast.readers")
        monkeypatch.setattr(readers, "entry_points", lambda *, group: [*installed, entry])
        monkeypatch.setattr(EntryPoint, "load", lambda self: globals()[value] if self == entry else load(self))
        readers._entries.cache_clear()

    yield install
    readers._entries.cache_clear()


def test_the_canonical_form_is_tried_first():
    assert format_names()[0] == "canonical"
    assert all(reader_named(name).name == name for name in format_names())


def test_another_packages_reader_is_found_by_content_and_by_name(plugin, written):
    plugin("shout", "ShoutingReader")
    path = written("jobs.txt", "JOBS!\njob_id,pool,submit_time,duration,gpus\n1,p,0,1,1\n")
    assert len(read_trace(path)) == 1
    assert len(read_trace(path, format="shout")) == 1
    assert format_names()[0] == "canonical"
    assert "shout" in format_names()


def test_a_reader_that_does_not_load_is_named_and_in_nobodys_way(plugin, csv_file, tmp_path):
    plugin("aa", "Nowhere")
    refused(ConfigError, r"reader 'aa' \(Nowhere\) does not load", read_trace, tmp_path / "jobs.csv", format="aa")
    header = "timestamp,duration,num_gpus,cluster\n"
    assert len(read_trace(csv_file("2017-10-02,1,1,a\n", header=header))) == 1
    with pytest.raises(TraceError, match=r"of no known format.*; reader 'aa' \(Nowhere\) does not load"):
        read_trace(csv_file("1,2\n", header="a,b\n"))


def test_an_unknown_format_lists_the_known(tmp_path):
    with pytest.raises(ConfigError, match=r"format 'swf2' is not known; give one of canonical, acme, .*philly"):
        read_trace(tmp_path / "jobs.csv", format="swf2")


@pytest.mark.parametrize(
    ("header", "nearest", "missing"),
    [
        ("a,b", "canonical", "job_id, pool, submit_time, duration, gpus"),
        ("job_id,pool,submit_time,length,gpus", "canonical", "duration"),
        ("timestamp,duration,cluster", "philly", "num_gpus"),
        ("job_id,user,vc,gpu_num,cpu_num,state,submit_time,start_time,end_time", "helios", "duration"),
        ("job_id,gpu_num,type,state,submit_time,start_time,end_time", "acme", "duration"),
    ],
)
def test_of_no_known_format_tells_the_nearest_and_what_it_lacks(written, header, nearest, missing):
    path = written("jobs.csv", f"{header}\n1,2\n")
    found = ", ".join(header.split(","))
    assert refused(TraceError, "", read_trace, path) == (
        f"{path}: of no known format: found columns {found}; nearest is {nearest}, which also needs {missing}; rename "
        f"the columns, or name the format to `jobcast trace convert` ({', '.join(format_names())})"
    )


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("job_id;pool;submit_time;duration;gpus\n1;a;0;1;1\n", "it has the columns of canonical with ';' between;"),
        ('\n"job_id";"pool";"submit_time";"duration";"gpus"\n', "it has the columns of canonical with ';' between;"),
        ("job_id\tpool\tsubmit_time\tduration\tgpus\n", "it has the columns of canonical with '\\t' between;"),
        ("JobID,Submit,Partition,State,Start,End,ElapsedRaw,AllocTRES\n", "it has the columns of sacct with ',' "),
        ('{"job_id": 1, "pool": "a"}\n', "JSON of none of them; write CSV or Parquet"),
    ],
)
def test_columns_that_are_parted_by_another_mark_are_not_to_be_renamed(written, text, told):
    path = written("jobs.csv", text)
    assert refused(TraceError, "", read_trace, path).startswith(f"{path}: of no known format: {told}")


def test_of_no_known_format_is_short_whatever_the_file_holds(written):
    path = written("jobs.csv", ",".join(f"column{number}" * 20 for number in range(300)))
    refused(TraceError, r"column15column15column15column15column15\.\.\. and 284 more; nearest", read_trace, path)
    path.write_bytes(gzip.compress(b"job_id,pool\n"))
    refused(TraceError, r"of no known format: it is compressed \(gzip\); unpack it first", read_trace, path)


@pytest.mark.parametrize("format", [name for name in format_names() if name != "swf"])
@pytest.mark.parametrize(
    ("wrap", "told"),
    [
        (gzip.compress, "it is compressed (gzip); unpack it first"),
        (lambda text: text.decode().encode("utf-16"), "it is text in UTF-16; save it in UTF-8"),
    ],
)
def test_a_file_to_be_unpacked_or_saved_anew_is_told_as_that_by_whatever_format(tmp_path, format, wrap, told):
    path = tmp_path / "jobs.txt"
    path.write_bytes(wrap(b"JobID|Submit|Partition|State|Start|End|ElapsedRaw|AllocTRES\n"))
    assert refused(TraceError, "", read_trace, path, format=format) == f"{path}: {told}"


@pytest.mark.parametrize("sheet", ["xl/workbook.xml", "mimetype", None])
def test_a_spreadsheet_is_told_as_that_and_not_to_be_unpacked(tmp_path, sheet):
    """Of Excel and LibreOffice, which are zip files, and of an old Excel; a zip file of traces is one all the same."""
    path, plain = tmp_path / "jobs.xlsx", tmp_path / "jobs.zip"
    if sheet is None:
        path.write_bytes(bytes.fromhex("d0cf11e0a1b11ae1"))
    else:
        with zipfile.ZipFile(path, "w") as packed:
            packed.writestr(sheet, "application/vnd.oasis.opendocument.spreadsheet")
    refused(TraceError, "it is a spreadsheet; save its sheet as CSV and give that", read_trace, path)
    with zipfile.ZipFile(plain, "w") as packed:
        packed.writestr("jobs.csv", "job_id,pool\n")
    refused(TraceError, r"it is compressed \(zip\); unpack it first", read_trace, plain)


def test_of_several_tables_the_one_to_be_unpacked_is_told(tmp_path):
    log, quotas = tmp_path / "cluster_log.csv", tmp_path / "cluster_gpu_number.csv.gz"
    log.write_text("job_id,vc,gpu_num,state,submit_time,start_time,end_time,duration\n")
    quotas.write_bytes(gzip.compress(b"date,vcA,total\n2020-04-01,8,8\n"))
    told = refused(TraceError, "", read_sources, [log, quotas])
    assert told == f"{quotas}: it is compressed (gzip); unpack it first"


def test_the_table_that_is_recognised_tells_the_format_whatever_its_place(tmp_path):
    (tmp_path / "b").write_text("timestamp,duration,num_gpus,cluster\n2017-10-02 00:00:00,1,1,a\n")
    (tmp_path / "a").write_text("machineId, number of GPUs, single GPU mem\nm1,8, 24GB\n")
    assert reader_for([tmp_path / "a", tmp_path / "b"]).name == "philly"


def test_rows_left_out_are_counted_once_and_keep_their_names():
    frame = pl.DataFrame({"gpus": [1, 0, 0, 2], "duration": [1.0, 0.0, 2.0, None]})
    place = Place("jobs", lambda index: f"line {index * 10}")
    unfit = [
        Unfit("no GPUs", frame["gpus"] == 0, "gpus", "must be >= 1"),
        Unfit("no duration", frame["duration"].fill_null(0) == 0, "duration", "must be > 0"),
    ]
    kept = leave_out(frame, unfit, place, strict=False)
    assert kept.frame.rows() == [(1, 1.0)]
    assert kept.dropped == {"no GPUs": 2, "no duration": 1}
    assert kept.place.row(0) == "line 0"
    with pytest.raises(
        TraceError, match=r"jobs, line 10, column gpus: must be >= 1, got 0 \(1 more row like it\); .*strict"
    ):
        leave_out(frame, unfit, place, strict=True)
    with pytest.raises(TraceError, match=r"none of its 3 rows is a job \(2 no GPUs, 1 no duration\)"):
        leave_out(frame[1:], [Unfit(u.reason, u.rows[1:], u.column, u.what) for u in unfit], place, strict=False)


def test_start_and_end_that_contradict_are_emptied_and_told():
    frame = pl.DataFrame({"submit_time": [5, 5, 5, 5], "start_time": [6, 4, 7, None], "end_time": [6, 9, 6, 1]})
    mended, notes = without_contradictions(frame, Place("jobs"), strict=False)
    assert mended.rows() == [(5, 6, 6), (5, None, None), (5, None, None), (5, None, None)]
    assert notes == ("start_time, end_time: emptied in 3 of 4 jobs, where they lie before submit_time or each other",)
    with pytest.raises(TraceError, match=r"row index 1, column start_time: .* got 4 \(2 more rows like it\)"):
        without_contradictions(frame, Place("jobs"), strict=True)


class FailingReader(ShoutingReader):
    """Another package's format that fails wherever it is told to."""

    name = "fail"
    at = "recognises"

    def recognises(self, path, head):
        if self.at == "recognises":
            raise RuntimeError("plug-in bug\nof two lines")
        return super().recognises(path, head)

    def read(self, sources, timezone=None, strict=False):
        if self.at == "nothing":
            return None
        raise KeyError("pool")


def test_a_reader_that_fails_to_tell_a_format_is_named_and_in_nobodys_way(plugin, csv_file):
    plugin("aa", "FailingReader")
    philly = csv_file("2017-10-02,1,1,a\n", header="timestamp,duration,num_gpus,cluster\n")
    told = "reader 'aa' (FailingReader) fails to tell a format (RuntimeError: plug-in bug); mend it"
    assert told in read_trace(philly).notes
    assert told not in read_trace(philly, format="philly").notes
    with pytest.raises(TraceError, match=r"of no known format.*; reader 'aa' \(FailingReader\) fails to tell a format"):
        read_trace(csv_file("1,2\n", header="a,b\n"))


@pytest.mark.parametrize(
    ("at", "why"), [("read", "KeyError: 'pool'"), ("nothing", "TypeError: it returns NoneType, no Reading")]
)
def test_a_reader_that_fails_to_read_is_named(plugin, monkeypatch, written, at, why):
    monkeypatch.setattr(FailingReader, "at", at)
    plugin("fail", "FailingReader")
    path = written("jobs.txt", "JOBS!\n")
    told = refused(TraceError, "", read_trace, path)
    assert f"{path}: reader 'fail' (" in told
    assert f"fails ({why}); mend it or convert the file by hand" in told


def test_a_panic_is_an_error_of_one_line(monkeypatch, csv_file):
    def panics(*_):
        raise pl.exceptions.PanicException("out of range\nfor a date")

    monkeypatch.setattr(CanonicalReader, "read", panics)
    with pytest.raises(TraceError, match=r"jobs.csv: holds what cannot be read \(out of range\); write or"):
        read_trace(csv_file("1,p,0,1,1\n"))


def test_a_year_that_python_has_not_is_refused_in_one_line(written):
    header = "job_id,vc,gpu_num,state,submit_time,start_time,end_time,duration\n"
    row = "1,v,1,COMPLETED,-020-04-01 00:00:00,2020-04-01 00:00:05,2020-04-01 00:00:09,4\n"
    path = written("cluster_log.csv", header + row)
    refused(TraceError, "row 2, column submit_time: must", read_trace, path)


def test_a_header_of_many_columns_is_refused_at_once_and_in_few_words(csv_file):
    wide = ",".join(f"column{n}" for n in range(30_000))
    for header in (f"{wide}\n", f"{wide},column5\n"):
        for name in (None, *format_names()):
            assert len(refused(JobcastError, "", read_trace, csv_file("1\n", header=header), format=name)) < 2000
