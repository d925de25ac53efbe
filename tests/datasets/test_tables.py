"""Tables in text files as people have them: what is understood, what is said about it, what is refused."""

import gzip
import json

import numpy as np
import pandas
import pytest
from typer.testing import CliRunner

from multicause.app.cli.commands import app
from multicause.datasets.reading import Reading, read_data


def written(folder, text, name="t.csv", encoding="utf-8"):
    """Write a text file; one whose name ends in .gz is compressed."""
    path = folder / name
    data = text.encode(encoding)
    path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)
    return path


COUNTED = "t,c\n" + "".join(f"{n},{n * n % 7}\n" for n in range(1, 8))


@pytest.mark.parametrize(
    ("text", "settings", "rows", "summary"),
    [
        # An index that pandas or R has written, or that counts or identifies rows, is no feature.
        (",a,b\n0,1.5,2\n1,2,3\n", {}, [[1.5, 2], [2, 3]], "2 rows, 2 columns a, b, index: Unnamed: 0"),
        (",0,1,2\n0,9,8,7\n1,6,5,4\n", {}, [[9, 8, 7], [6, 5, 4]], "2 rows, 3 columns 0, 1, 2, index: Unnamed: 0"),
        ("a,b\nx,1,2\ny,3,4\n", {}, [[1, 2], [3, 4]], "2 rows, 2 columns a, b, 1 text column ignored: Unnamed: 0"),
        ("a b\n1 1 2\n2 3 4\n3 5 5\n", {}, [[1, 2], [3, 4], [5, 5]], "3 rows, 2 columns a, b, index: Unnamed: 0 ("),
        ("a,b\n1.5,1,2\n2.7,3,4\n", {"index": "0"}, [[1, 2], [3, 4]], "2 rows, 2 columns a, b, index: Unnamed: 0"),
        ("user_id,c\n10,2\n33,2.5\n", {}, [[2], [2.5]], "2 rows, 1 column c, index: user_id"),
        ("user_id,c\n10,2\n33,2.5\n", {"index": "none"}, [[10, 2], [33, 2.5]], "2 rows, 2 columns user_id, c"),
        ("u,c,d\n10,2,3\n33,2.5,4\n", {"index": "u"}, [[2, 3], [2.5, 4]], "2 rows, 2 columns c, d, index: u"),
        ("u,c,d\n10,2,3\n33,2.5,4\n", {"index": -1}, [[10, 2], [33, 2.5]], "2 rows, 2 columns u, c, index: d"),
        ('"a, b",c\n1,2\n3,4.5\n', {}, [[1, 2], [3, 4.5]], "2 rows, 2 columns 'a, b', c"),
        (COUNTED, {}, [[n * n % 7] for n in range(1, 8)], "7 rows, 1 column c, index: t"),
        ("id,a\n12345678901234567890,1\n12345678901234567891,2\n", {}, [[1], [2]], "2 rows, 1 column a, index: id"),
        # Without a header no row is lost.
        ("1.5,2\n3,4\n", {}, [[1.5, 2], [3, 4]], "2 rows, 2 columns 0, 1 (no header)"),
        ("Rome,1,2\nParis,3,4\n", {}, [[1, 2], [3, 4]], "2 rows, 2 columns 1, 2, 1 text column ignored: 0 (no header)"),
        ("0,1,2\n3,4,5\n6,7,8\n", {}, np.arange(9).reshape(3, 3), "3 rows, 3 columns 0, 1, 2 (no header)"),
        ("2019,2020\n3,4\n", {"header": True}, [[3, 4]], "1 row, 2 columns 2019, 2020"),
        ("2019,2020\n3,4\n", {"header": False}, [[2019, 2020], [3, 4]], "2 rows, 2 columns 0, 1 (no header)"),
        # Separators, and marks of numbers.
        ("a;b\n1,5;2,5\n3;4,25\n", {}, [[1.5, 2.5], [3, 4.25]], "columns a, b (separated by ;, decimal commas)"),
        (
            "a;p\n1,5;2,5 %\n3,5;4 %\n",
            {},
            [[1.5], [3.5]],
            "2 rows, 1 column a, 1 text column ignored: p (separated by ;",
        ),
        ("a,,c\n1,2,3\n4,5,6\n", {}, [[1, 2, 3], [4, 5, 6]], "2 rows, 3 columns a, Unnamed: 1, c"),
        ("1,5;2,5\n3;4,25\n", {}, [[1.5, 2.5], [3, 4.25]], "(separated by ;, decimal commas, no header)"),
        ("a;b\n1.500,5;2\n3;4,12\n", {}, [[1500.5, 2], [3, 4.12]], "decimal commas, thousands separated by '.'"),
        ('a,b\n"1,234.5",2\n"3,000",4\n', {}, [[1234.5, 2], [3000, 4]], "(thousands separated by ',')"),
        ("a;b\n1'234;2\n3'000;4\n", {}, [[1234, 2], [3000, 4]], "thousands separated by"),
        ("a;b\n1,500;2\n3;4\n", {"decimal": ","}, [[1.5, 2], [3, 4]], "decimal commas"),
        ("a;b\n1,500;2\n3;4\n", {"thousands": ","}, [[1500, 2], [3, 4]], "thousands separated by ','"),
        ("a|b\n1|2\n3|4\n", {}, [[1, 2], [3, 4]], "(separated by |)"),
        ("a   b\n1   2\n 3  4\n", {}, [[1, 2], [3, 4]], "(separated by white space)"),
        ("sep=;\na;b\n1;2\n3;4\n", {}, [[1, 2], [3, 4]], "(separated by ;)"),
        ("a x\n1,5\n3,7\n", {"separator": "tab", "decimal": ","}, [[1.5], [3.7]], "2 rows, 1 column a x"),
        # Decoration.
        ('"a","b"\n"1","2"\n"3","4"\n', {}, [[1, 2], [3, 4]], "2 rows, 2 columns a, b"),
        ('city,a\n"Rome, IT",1\n"Nice\n(FR)",3\n', {}, [[1], [3]], "2 rows, 1 column a, 1 text column ignored: city"),
        ("\n\na,b\n\n1,2\n\n3,4\n\n", {}, [[1, 2], [3, 4]], "2 rows, 2 columns a, b"),
        ("# made today\na,b\n1,2\n# in between\n3,4\n", {}, [[1, 2], [3, 4]], "2 rows, 2 columns a, b"),
        ("# a b\n1 2\n3 4\n", {}, [[1, 2], [3, 4]], "2 rows, 2 columns a, b (separated by white space)"),
        ("n,b\nx,2\n#y,4\nz,5\n", {}, [[2], [4], [5]], "3 rows, 1 column b, 1 text column ignored: n"),
        ("n,b\n#1,2\n#2,4\n#3,5\n", {}, [[2], [4], [5]], "3 rows, 1 column b, 1 text column ignored: n"),
        ("a,b\n1,2,\n3,4,\n", {}, [[1, 2], [3, 4]], "2 rows, 2 columns a, b"),
        ("a,b,\n1,2\n3,4\n", {}, [[1, 2], [3, 4]], "2 rows, 2 columns a, b"),
        ("a,b,e\n1,2,\n3,4,\n", {}, [[1, 2], [3, 4]], "2 rows, 2 columns a, b, 1 empty column ignored: e"),
        ("a,b\r1,2\r3,4\r", {}, [[1, 2], [3, 4]], "2 rows, 2 columns a, b"),
        ("a,x\n1,True\n2,False\n", {}, [[1, 1], [2, 0]], "2 rows, 2 columns a, x"),
        ("a,x\n1e5,-4.\n.5,+2E-3\n", {}, [[1e5, -4], [0.5, 2e-3]], "2 rows, 2 columns a, x"),
        ("a\n1\n2\n", {}, [[1], [2]], "2 rows, 1 column a"),
        ("a,when\n1,2024-01-31\n2,2024-02-01\n", {}, [[1], [2]], "1 text column ignored: when"),
        ("a,b,c\n1,2,3\n4,5,6\n", {"drop": ("a,b",)}, [[3], [6]], "2 rows, 1 column c, 2 columns left out: a, b"),
        ('"a,b",c,d\n1,2,3\n4,5,6\n', {"drop": ("a,b", "c")}, [[3], [6]], "1 column d, 2 columns left out: 'a,b', c"),
    ],
)
def test_tables_are_understood_and_the_summary_says_how(text, settings, rows, summary, tmp_path):
    found = read_data(written(tmp_path, text), Reading(**settings))
    np.testing.assert_array_equal(found.rows, rows)
    assert summary in found.summary
    # Read again with what was understood, as later data are.
    again = read_data(tmp_path / "t.csv", found.reading)
    np.testing.assert_array_equal(again.rows, rows)
    assert again.names == found.names


def test_many_columns_are_abbreviated(tmp_path):
    numbers = pandas.DataFrame(np.random.RandomState(0).normal(size=(600, 9)), columns=list("abcdefghi"))
    numbers.assign(city="Rome").to_csv(tmp_path / "t.csv", index=False)
    found = read_data(tmp_path / "t.csv")
    assert found.summary == "600 rows, 9 columns a…i, 1 text column ignored: city"
    np.testing.assert_allclose(found.rows, numbers, rtol=1e-14)


@pytest.mark.parametrize(
    ("name", "encoding", "separator"),
    [
        ("t.csv", "utf-8-sig", ","),
        ("t.csv", "utf-16", ","),
        ("t.csv", "latin-1", ","),
        ("t.csv.gz", "utf-8", ","),
        ("t.tsv", "utf-8", "\t"),
        ("t.tsv.gz", "latin-1", "\t"),
    ],
)
def test_encodings_and_compressed_files(name, encoding, separator, tmp_path):
    text = "größe,b\n1,2\n3,4\n".replace(",", separator)
    found = read_data(written(tmp_path, text, name, encoding))
    assert found.names == ["größe", "b"]
    np.testing.assert_array_equal(found.rows, [[1, 2], [3, 4]])
    assert bool(found.remarks) == (encoding == "latin-1")  # which was guessed
    assert read_data(tmp_path / name, Reading(encoding=encoding)).remarks == ()


@pytest.mark.parametrize(
    ("text", "remark"),
    [
        (
            "x,c,d\n1,2,3\n3,2,3\n",
            "Constant, so that nothing can be learned from them (drop=... leaves them out): 'c', 'd'.",
        ),
        ("x,b\n9007199254740993,2\n1,4\n", "Whole numbers beyond 2^53 are rounded"),
        ("x,b\n123456789012345678901234567890,2\n1,4\n", "Whole numbers beyond 2^53 are rounded"),
        ("a,a,b\n1,2,3\n4,5,6\n", "Names that occur more than once are numbered ('a', 'a.1', …): 'a'."),
        ("zip,b\n01234,2\n12345,4\n", "Numbers that begin with zeros may be codes"),
        ("a,p\n1,5 %\n2,7 %\n", "Numbers with signs or units are ignored as texts; write them without: 'p'."),
        ("a,b\n1,2\n,\n3,4\n", "Rows without any value were left out: 1."),
        (
            "a,b\n" + "1,2\n3,4\n" * 1500 + "# the end\n",
            "Lines between rows that begin with # were left out as comments: 1.",
        ),
        (COUNTED, "Column 't' counts the rows and is taken as index, not as feature; index='none' keeps it."),
        (",a\n1,2\n5,3\n", "Column 'Unnamed: 0' has no name and is taken as index"),
    ],
)
def test_remarks_on_what_may_be_meant_otherwise(text, remark, tmp_path):
    remarks = read_data(written(tmp_path, text)).remarks
    assert any(remark in found for found in remarks), remarks


@pytest.mark.parametrize(
    ("text", "settings", "message"),
    [
        (
            "a,b\n1.5,1,2\n2.7,3,4\n",
            {},
            "has fewer names ('a', 'b') than most rows have values (3). If the first column",
        ),
        ("a\n1,5\n2,7\n", {}, "If the comma is a decimal comma, use separator=';' and decimal=','"),
        ("My export\n\na,b,c\n1,2,3\n3,4,5\n", {}, "If it is a title, remove it"),
        ("a,b,c\n1,2\n3,4\n", {}, "has more names ('a', 'b', 'c') than most rows have values (2)"),
        ("2019,2020,2021\n1,2,3\n3,4,9\n", {}, "('2019', '2020', '2021') may hold names of columns or data. Say which"),
        ("?,1,2\n3,4,5\n6,7,8\n", {}, "may hold names of columns or data. Say which with header=True or header=False"),
        ("a;b\n1,500;2\n3;4\n", {}, "'1,500' may be 1500 or 1.500. Say which with thousands=',' or decimal=','"),
        (
            "a;b\n1,5;2.5\n3;4,25\n",
            {},
            "decimal comma ('1,5') and others a decimal point ('2.5'). Say which with dec",
        ),
        ("a,b\n1,2\n3,4,5\n", {}, "line 3 has 3 values, but there are 2 columns (columns are separated by ',')"),
        ('a,b\n1,"2\n3,4\n', {}, "a quotation mark is opened and never closed"),
        ("a,b\n1,\0\n3,4\n", {}, "it holds binary data, or text in another encoding"),
        ("a,b\n1,?\n2,3\n4,5\n", {}, "'b' of 't.csv' has numbers in 2 of 3 rows, but other text in row 0 such as '?'"),
        ("t,v\ns,mV\n1,2\n2,4\n", {}, "other text in row 0 such as 's' (rows are counted from 0). Correct or fill in"),
        (
            "a;b\n1;2\n3;5\n" + "4;8\n" * 3000 + "1,5;2\n",
            {},
            "row 3002 such as '1,5' (rows are counted from 0). If comma",
        ),
        ("a\n1.5\n2.123\n", {"thousands": ".", "header": True}, "other text in row 0 such as '1.5'"),
        ("a;b\n1.5;2\n2.7;3\n", {"decimal": ",", "columns": ("a", "b")}, "If points are decimal points, use dec"),
        (
            "a,b,c\n1,inf,3\ninf,2,3\n4,5,6\n-inf,1,2\n",
            {},
            "column 'a' in 2 of 4 rows (1, 3); column 'b' in 1 of 4 rows (0)",
        ),
        (
            "a,b\n1,inf\n3,4\n",
            {},
            "Models need finite values: leave columns out with drop=('b',), remove these rows, or fill",
        ),
        ("a,b\n1,inf\n3,4\n5,\n", {}, "has values that are infinite: column 'b' in 1 of 3 rows (0)"),
        (
            "a,b\n1,2\n3,4\n",
            {"index": "z"},
            "has no column 'z' for index=...; it has 'a', 'b'. Give a name, a number from",
        ),
        (
            "a,b\n1,2\n3,4\n",
            {"columns": ("a", "c")},
            "lacks columns that the model was fitted to: 'c'; it has 'a', 'b'.",
        ),
        ("a,b\n1,x\n3,y\n", {"columns": ("a", "b")}, "'b' of 't.csv' has numbers in 0 of 2 rows, but other text in 2"),
        ("a,b\n1,2\n3,4\n", {"encoding": "utf-9"}, "Unknown encoding 'utf-9'"),
        (
            "ä,b\n1,2\n3,4\n",
            {"encoding": "ascii"},
            "is not encoded as ascii: ordinal not in range(128). Name its encoding",
        ),
        (
            "a,b\n1,2\n3,4\n",
            {"separator": "ab"},
            "separator must be one character, or a word such as 'tab' or 'space'; got",
        ),
        ("a,b\n1,2\n3,4\n", {"decimal": ";"}, "decimal must be a comma or a point; got ';'"),
        ("a,b\n1,2\n3,4\n", {"decimal": ",", "thousands": ","}, "must differ; both are ','"),
    ],
)
def test_what_cannot_be_decided_or_used_is_an_error_with_a_remedy(text, settings, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    written(tmp_path, text)
    with pytest.raises(ValueError) as caught:
        read_data("t.csv", Reading(**settings))
    assert message in str(caught.value)


def test_a_damaged_compressed_file(tmp_path):
    path = written(tmp_path, "a,b\n" + "1.25,2.5\n" * 1000, "t.csv.gz")
    path.write_bytes(path.read_bytes()[:40])
    with pytest.raises(ValueError, match="cannot be read as a table"):
        read_data(path)
    path.write_text("a,b\n1,2\n")
    with pytest.raises(OSError, match="gzip"):
        read_data(path)


def test_identifiers_of_a_parquet_file_are_no_features(tmp_path):
    numbers = pandas.DataFrame({"a": [1.0, 2.0], "b": [3, 5]}, index=pandas.Index([7, 9], name="key"))
    numbers.assign(city=["x", "y"], when=pandas.Timestamp("2024-01-01")).to_parquet(tmp_path / "t.parquet")
    found = read_data(tmp_path / "t.parquet")
    assert found.names == ["a", "b"]
    assert found.summary == "2 rows, 2 columns a, b, index: key, 2 text columns ignored: city, when"
    others = found.others()
    assert list(others) == ["key", "city", "when"]
    assert others["key"].tolist() == [7, 9]
    numbers.set_index("b", append=True).to_parquet(tmp_path / "t.parquet")
    assert read_data(tmp_path / "t.parquet").summary == "2 rows, 1 column a, 2 columns left out: key, b"


# ------------------------------------------------------------------------------------------- on the command line


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run that was fitted to a table with decimal commas, identifiers and a text column."""
    folder = tmp_path_factory.mktemp("run")
    random = np.random.RandomState(0)
    rows = [f"00{n};NA;{random.normal():.3f};{random.normal():.2f}" for n in range(30)]
    written(folder, "code;country;x;y\n" + "\n".join(rows).replace(".", ","), "train.csv")
    words = ["fit", folder / "train.csv", "--index", "code", "--model", "kmeans", "--components", 2, "--no-report"]
    result = CliRunner().invoke(app, [str(word) for word in [*words, "--out", folder / "run"]])
    assert result.exit_code == 0, result.output
    said = " ".join(result.output.split())
    assert "30 rows, 2 columns x, y, index: code, 1 empty column ignored: country (separated by ;, decimal" in said
    return folder / "run"


def transformed(run, path, out, *options):
    return CliRunner().invoke(app, ["transform", str(run), str(path), "--out", str(out), *options])


def test_columns_that_were_left_out_are_carried_into_the_output(run, tmp_path):
    """As they are written in the file: a code keeps its zeros, and Namibia's NA is no missing value."""
    written(tmp_path, "y;country;code;note;x\n1,5;NA;007;12345678901234567890;-1\n-1;DE;010;;0,25\n", "new.csv")
    result = transformed(run, tmp_path / "new.csv", tmp_path / "causes.csv")
    assert result.exit_code == 0, result.output
    assert "2 rows, 2 columns x, y, 3 columns left out: country, code, note" in " ".join(result.output.split())
    found = pandas.read_csv(tmp_path / "causes.csv", dtype=str, keep_default_na=False)
    assert list(found.columns) == ["country", "code", "note", "kmeans0", "kmeans1"]
    assert found["country"].tolist() == ["NA", "DE"]
    assert found["code"].tolist() == ["007", "010"]
    assert found["note"].tolist() == ["12345678901234567890", ""]
    plain = transformed(run, tmp_path / "new.csv", tmp_path / "causes.npy")
    assert "holds numbers only (csv and parquet hold all): country, code, note." in " ".join(plain.output.split())
    np.testing.assert_array_equal(np.load(tmp_path / "causes.npy"), found[["kmeans0", "kmeans1"]].astype(float))


def test_later_data_are_read_as_those_of_the_fit_unless_options_say_otherwise(run, tmp_path):
    settings = json.loads((run / "settings.json").read_text())
    understood = {name: settings["reading"][name] for name in ("separator", "header", "decimal", "thousands", "index")}
    assert understood == {"separator": ";", "header": True, "decimal": ",", "thousands": "", "index": "code"}
    # On its own, 1,500 could be read in two ways.
    written(tmp_path, "x;y\n1,500;2\n0,5;1,250\n", "same.csv")
    written(tmp_path, "y,x\n2,1.500\n1.250,0.5\n", "other.csv")
    written(tmp_path, "x;z\n1,500;2\n", "lacking.csv")
    assert transformed(run, tmp_path / "same.csv", tmp_path / "same.npy").exit_code == 0
    refused = transformed(run, tmp_path / "other.csv", tmp_path / "other.npy")
    assert refused.exit_code == 2
    assert "lacks columns that the model was fitted to: 'x', 'y'; it has 'y,x'" in refused.stderr
    assert "set --sep" in refused.stderr
    for name, options in (("a.npy", ["--sep", ","]), ("b.npy", ["--sep", ",", "--decimal", "."])):
        assert transformed(run, tmp_path / "other.csv", tmp_path / name, *options).exit_code == 0
        np.testing.assert_array_equal(np.load(tmp_path / "same.npy"), np.load(tmp_path / name))
    assert (
        "lacks columns that the model was fitted to: 'y'"
        in transformed(run, tmp_path / "lacking.csv", tmp_path / "x.npy").stderr
    )
