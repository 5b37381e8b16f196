"""A CSV file is read as it is meant, and a cell that is not as it ought to be is named by line and column."""

from __future__ import annotations

import csv
import os
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from numpy.typing import NDArray

from handgrad.data import Dataset, read_csv
from handgrad.errors import DataError, HandgradNotice

Read = Callable[..., Dataset]


@pytest.fixture
def read(tmp_path: Path) -> Read:
    """Write a text to t.csv, and read that."""

    def read(text: str, name: str = "t.csv", encoding: str = "utf-8", **options: object) -> Dataset:
        (tmp_path / name).write_text(text, encoding=encoding, newline="")
        return read_csv(tmp_path / name, **options)

    return read


@settings(deadline=None)
@given(
    x=hnp.arrays(float, st.tuples(st.integers(1, 6), st.integers(1, 4)), elements=st.floats(-1e300, 1e300)),
    delimiter=st.sampled_from(",;\t"),
    ending=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
)
def test_numbers_are_read_back_exactly(
    x: NDArray, delimiter: str, ending: str, quoting: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    target = np.arange(len(x)) + 0.5
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter, lineterminator=ending, quoting=quoting)
        writer.writerow([*(f"x{index}" for index in range(x.shape[1])), "y"])
        writer.writerows(np.column_stack([x, target]).tolist())
    data = read_csv(path, target="y")
    np.testing.assert_array_equal(data.x, x)
    np.testing.assert_array_equal(data.t, target)


def test_decimal_commas_are_read_where_semicolons_delimit(read: Read) -> None:
    """As spreadsheets write both."""
    data = read("a;b;y\n1,5;-,25;7\n;+2,5e1;8,5\n 3 ;4;9\n", target="y")
    assert data.t.tolist() == [7, 8.5, 9]
    columns = dict(zip(data.feature_names, data.x.T.tolist(), strict=True))
    assert columns["b"] == [-0.25, 25, 4]
    assert columns["a"] == [1.5, 2.25, 3]  # the median, where it is empty
    for mixed in ("a;y\n1,5;2\n1.500;3\n", "a;y\n1.5;2\n3;1,500\n"):
        with pytest.raises(
            DataError, match=r"t\.csv, line 3: column '.' holds '1[.,]500', and column 'a' in line 2 '1[.,]5'"
        ):
            read(mixed, target="y")
    with pytest.raises(DataError, match=r"column 'a' holds '1,5', and a finite number is needed"):
        read('a,y\n"1,5",2\n"2,5",3\n', target="y")  # 1,500 may be 1500


def test_points_that_may_group_thousands_are_noticed(read: Read) -> None:
    """Where semicolons delimit, as in German: 2.037 beside 900 was 2.037, without a word. A decimal shows that it is one."""
    said = r"t\.csv: column 'a' holds 2\.037, which was read as 2\.037; if its points group thousands, write it without"
    with pytest.warns(HandgradNotice, match=said):
        assert read("a;b;y\n900;0.125;1\n2.037;1.250;3\n", target="y").x[:, 0].tolist() == [900, 2.037]
    read("a;y\n2.037;1\n2.5;3\n", target="y")
    read("a,y\n2.037,1\n900,3\n", target="y")


def test_features_keep_their_order_around_the_target(read: Read) -> None:
    data = read("a,kind,b,c\n1,cat,2,3\n4,dog,5,6\n", target="kind")
    assert data.name == "t.csv"
    assert data.x.tolist() == [[1, 2, 3], [4, 5, 6]]
    assert data.feature_names == ("a", "b", "c")
    assert (data.task, data.classes, data.t.tolist()) == ("classification", ("cat", "dog"), [0, 1])


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_the_delimiter_is_found_in_the_first_line(read: Read, delimiter: str) -> None:
    text = "height m,age,y\n1.5,2,0.5\n3,4,1.5\n".replace(",", delimiter)
    assert read(text, target="y").feature_names == ("height m", "age")


def test_the_delimiter_of_tsv_is_a_tab(read: Read) -> None:
    data = read("a, b, c\ty\n1\t0.5\n2\t1.5\n", name="t.TSV", target="y")
    assert data.feature_names == ("a, b, c",)


def test_byte_order_mark_spaces_quotes_and_blank_lines_do_no_harm(read: Read) -> None:
    text = '"a", b ,"the, kind"\r\n 1 , 2,"cat, small"\r\n\r\n3,"4", dog \r\n\r\n'
    data = read(text, encoding="utf-8-sig", target="the, kind")
    assert data.feature_names == ("a", "b")
    assert data.x.tolist() == [[1, 2], [3, 4]]
    assert data.classes == ("cat, small", "dog")


@pytest.mark.parametrize(
    ("cells", "task", "classes"),
    [
        (["0", "1", "0", "1"], "classification", ("0", "1")),
        (["10", "9", "10", "9"], "classification", ("9", "10")),
        (["1", "2", "3", "4"], "regression", ()),
        (["0.0", "1.0", "0.0", "2.0"], "regression", ()),
        (["1.0", "1.0", "1.0", "1.0"], "regression", ()),
        (["1e3", "2", "2", "1e3"], "regression", ()),
        (["9" * 20, "1", "9" * 20, "1"], "regression", ()),
        (["True", "False", "True", "False"], "classification", ("False", "True")),
        (["None", "bread", "None", "bread"], "classification", ("None", "bread")),
    ],
)
@pytest.mark.filterwarnings("ignore:.*the target is the same in every row")
def test_the_task_follows_from_the_target(
    read: Read, cells: list[str], task: str, classes: tuple[str, ...]
) -> None:
    data = read("x,y\n" + "".join(f"1,{cell}\n" for cell in cells), target="y")
    assert (data.task, data.classes) == (task, classes)


def test_the_task_may_be_given(read: Read) -> None:
    assert read("x,y\n1,0\n2,1\n3,0\n4,1\n", target="y", task="regression").t.dtype == np.float64
    assert read("x,y\n1,1.0\n2,2.0\n", target="y", task="classification").classes == ("1", "2")
    assert read("x,y\n1,1\n2,1b\n", target="y", task="classification").classes == ("1", "1b")


def test_several_targets_are_regression_in_the_order_asked_for(read: Read) -> None:
    data = read("a,x,b\n1,2,3\n4,5,6\n", target=["b", "a"])
    assert (data.task, data.t.tolist(), data.feature_names) == ("regression", [[3, 1], [6, 4]], ("x",))


@pytest.mark.parametrize(
    ("cells", "kept"),
    [(["cat", "", "dog", " NaN", "cat"], [0, 2, 4]), (["0.5", "7", "", "NA", "8"], [0, 1, 4])],
)
def test_rows_without_a_target_are_left_out(read: Read, cells: list[str], kept: list[int]) -> None:
    with pytest.warns(UserWarning, match="the target is empty: 2 rows are left out, and 3 remain"):
        data = read("x,y\n" + "".join(f"{k},{cell}\n" for k, cell in enumerate(cells)), target="y")
    assert (data.x[:, 0].tolist(), len(data.t)) == (kept, 3)


def test_none_and_a_question_mark_may_be_classes(read: Read) -> None:
    assert read("x,y\n1,None\n2,?\n3,None\n", target="y").classes == ("?", "None")


def test_errors_count_lines_without_a_target(read: Read) -> None:
    with (
        pytest.warns(UserWarning, match=r"line 2: .* 1 row is left out"),
        pytest.raises(DataError, match="line 4: column 'x'"),
    ):
        read("x,y\n1,\n2,5\nz,3\n1,4\n", target="y")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a,b,y\n1,2,3\n4,five,6\n", "t.csv, line 3: column 'b' holds 'five', and a finite number is needed"),
        ("a,b,y\n1,2,3\n\n4,1_000,6\n", "t.csv, line 4: column 'b' holds '1_000'"),
        (
            "a,b,y\nnan,x,3\nNA,z,5\n",
            "t.csv: no column has anything .*\n.*a: unused: empty .*b: unused: 2 texts",
        ),
        ("a,b,y\n1,1/2/2000,0.5\n2,3/4/2000,1\n", "line 2: column 'b' holds '1/2/2000', and no row decides"),
        ("a,b,y\n1,$1,0.5\n2,$1,1\n", "line 2: column 'b' holds '.1', and a finite number is needed"),
        ("a,b,y\n1,-inf,3\n", "t.csv, line 2: column 'b' holds '-inf'"),
        ("a\tb\ty\n1\t2,5\t3\n", "t.csv, line 2: column 'b' holds '2,5'"),
        (f"a,b,y\n1,${'2' * 999},3\n", "line 2: column 'b' holds '.2{58}, and"),
        ("a,b,y\n1,2,\n1,2,NA\n", "t.csv, line 2: the target is empty, as in every row"),
        ("a,b,y\n1,2,3\n1,2\n", "t.csv, line 3: 2 cells found, and 3 expected"),
        ("a,b,y\n1,2,3,4\n", "t.csv, line 2: 4 cells found, and 3 expected"),
        ("a,b,y\n1,2,0.5\n1,2,inf\n", "t.csv, line 3: column 'y' holds 'inf'"),
        ("a,b,y\n1,2,cat\n1,2,7\n", "t.csv, line 2: column 'y' holds 'cat'"),
        ('a,b,y\n1,2,"3\n', r"t.csv: the file cannot be read: unexpected end of data"),
        ("a,b,y\n1,2,cat\n3,4,cat\n", "t.csv: there is one class, 'cat'"),
        ("", "t.csv: the first line is empty"),
        ("\n\n", "t.csv: the first line is empty"),
        ("a,b,y\n", "t.csv: the file has a header and no rows"),
        ("a,b,a,y\n1,2,3,4\n", "t.csv: columns 1 and 3 have the same name, 'a'"),
        ("a,,y\n1,2,3\n", "t.csv: column 2 of 3 has no name"),
        ("a,b,year\n1,2,3\n", r"t.csv: there is no column 'y'\n  fix    choose from a, b, year"),
        ("y\n1\n", "t.csv: every column is a target"),
    ],
)
def test_a_wrong_file_is_refused(read: Read, text: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read(text, target="y")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"target": None}, r"t\.csv: no target is named.*\n  given  the columns age, sort, kind\n"),
        ({"target": "kid"}, r"t\.csv: there is no column 'kid'\n  fix    did you mean 'kind'\?"),
        ({"target": ["age", "age"]}, "the target 'age' is named twice"),
        ({"target": ["age", "sort"], "task": "classification"}, "takes one target, and 2 are named"),
        ({"target": ["age", "kind"]}, "line 2: column 'kind' holds 'cat'"),
        ({"target": "kind", "task": "regression"}, "line 2: column 'kind' holds 'cat'"),
    ],
)
def test_a_wrong_target_is_refused(read: Read, options: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=message):
        read("age,sort,kind\n1,0,cat\n2,1,dog\n", **options)


def test_texts_that_are_no_classes_are_refused_as_a_target(read: Read) -> None:
    """Prices as texts, dates and names of rows would each be a class of their own; whoever means that can ask for it."""
    prices = [f'"${k},000.50"' for k in range(1, 40)]
    days = [f"2024-{k % 12 + 1:02d}-{k % 27 + 1:02d}" for k in range(40)]
    for cells, problem in (
        (
            prices,
            r"target y: the target is text, '\$1,000\.50' in the first row, and looks like numbers\n.*1234\.5",
        ),
        (days, "so classes, and nearly every one differs: 40 different ones in 40 rows"),
    ):
        table = "a,y\n" + "".join(f"{k**2},{cell}\n" for k, cell in enumerate(cells))
        with pytest.raises(DataError, match=problem):
            read(table, target="y")
        assert len(read(table, target="y", task="classification").classes) == len(cells)
    table = "a,y\n" + "".join(f"{k**2},name{k % 30}\n" for k in range(90))
    with pytest.warns(HandgradNotice, match="the target is text, so classes: 30 different ones in 90 rows"):
        assert read(table, target="y").task == "classification"


def test_a_target_that_never_changes_is_noticed(read: Read) -> None:
    with pytest.warns(HandgradNotice, match="the target is the same in every row"):
        read("a,y\n1,7.5\n2,7.5\n", target="y")


@pytest.mark.parametrize(
    ("text", "fix"),
    [
        ("a,b c\n1,2\n", r"as in --target 'b c', or target='b c' in Python"),
        ("a|b|y\n1|2|3\n", r"'a\|b\|y', and it looks separated by '\|'"),
        ("a;b;y\n1;2;5;3\n", "one that holds a semicolon is written in double quotes"),
        ("a,y\nx,1\ny,2\n", "of a text that is in one row alone nothing can be learnt"),
        ("a,y\n1,1\n2,1\nunknown,2\n", "leave it empty where the value is missing"),
    ],
)
def test_errors_say_what_mends_the_file(read: Read, text: str, fix: str) -> None:
    with pytest.raises(DataError, match=fix):
        read(text, target="y" if "y" in text.partition("\n")[0] else None)


def test_a_long_list_of_columns_is_cut_in_errors(read: Read) -> None:
    with pytest.raises(DataError, match=r"p0, p1, .*, p19 and 80 more"):
        read(",".join(f"p{index}" for index in range(100)) + "\n", target=None)


def test_a_file_that_is_not_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"a,y\n1,\xff\xfe\n")
    with pytest.raises(
        DataError, match=r"t\.csv, line 2: not UTF-8: it has the byte 0xff\n  fix    .*iconv -f latin1"
    ):
        read_csv(tmp_path / "t.csv", target="y")


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"gone\.csv: there is no such file"):
        read_csv(tmp_path / "gone.csv", target="y")


def test_a_pipe_is_read_once_and_whole(tmp_path: Path) -> None:
    """What another program writes as it goes, as a table that it unpacks."""
    pipe = tmp_path / "slow.csv"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_text, args=("a;b;t\n1;2;3\n4;5;6\n7;8;9.5\n",))
    writer.start()
    data = read_csv(pipe, target="t")
    writer.join()
    assert data.x.tolist() == [[1, 2], [4, 5], [7, 8]]
    assert data.t.tolist() == [3, 6, 9.5]


def test_a_first_column_without_a_name_holds_the_names_of_rows(read: Read) -> None:
    """As pandas and R write it."""
    data = read(",a,y\n0,2,3\n1,4,6\n", target="y")
    assert data.columns[0].text() == "unused: without a name, as pandas and R write the names of rows"
    assert (data.feature_names, data.x.tolist()) == (("a",), [[2], [4]])
