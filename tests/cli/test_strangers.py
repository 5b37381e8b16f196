"""What strangers put into data, settings and run folders: it is shown as text, and reaches nothing else."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from handgrad import RunError
from handgrad.runs import load_run
from handgrad.tracking import TensorBoard
from handgrad.training import EpochRecord

from ..conftest import Command

MARKUP = '</script><script>alert(1)</script><img src=x onerror="alert(2)">'
RUN = Path(__file__).parents[1] / "fuzz" / "corpus" / "run"
ESCAPES = "\x1b]0;renamed\x07\x1b[2J"


def table(path: Path, column: str, classes: tuple[str, str]) -> None:
    """Write rows of two classes, with a column of this name."""
    quoted = [name.replace('"', '""') for name in (column, *classes)]
    rows = [f'{row % 7},{row % 3},"{quoted[1 + row % 2]}"' for row in range(40)]
    path.write_text("\n".join([f'"{quoted[0]}",width,kept', *rows]) + "\n", encoding="utf-8")


def test_names_in_data_are_text_on_a_page(handgrad: Command, tmp_path: Path) -> None:
    """Of columns, of classes and of the file itself: none becomes an element or ends the script."""
    name = MARKUP.replace("/", "_")
    table(tmp_path / f"{name}.csv", MARKUP, (MARKUP, f"not {MARKUP}"))
    handgrad("train", f"{name}.csv", "--target", "kept", "--hidden", "3", "--epochs", "1", "--out", "run")
    for page in (tmp_path / "run" / "explanation.html", tmp_path / "again.html"):
        if not page.exists():
            handgrad("explain", "run", "--html", page)
        text = page.read_text(encoding="utf-8")
        assert "<script>alert" not in text
        assert "<img" not in text
        assert text.count("<script") == text.count("</script>") == 2


def test_names_in_data_move_no_cursor(handgrad: Command, tmp_path: Path) -> None:
    """An error shows what a terminal would obey spelt out."""
    table(tmp_path / "rows.csv", ESCAPES, ("a", "b"))
    done = handgrad("train", "rows.csv", "--target", "price", code=1)
    assert done.stderr == (
        "Error: rows.csv: there is no column 'price'\n"
        "  fix    choose from \\x1b]0;renamed\\x07\\x1b[2J, kept, width\n"
    )


def test_a_name_too_long_for_a_file_moves_no_cursor(handgrad: Command, tmp_path: Path) -> None:
    """The system's own error about it, which no part of handgrad names, is shown like others."""
    long = ESCAPES + "a" * 300
    (tmp_path / "net.toml").write_text(f"[data]\nsource = {json.dumps(long)}\n")
    done = handgrad("show", "--config", "net.toml", code=1)
    assert done.stderr == f"Error: \\x1b]0;renamed\\x07\\x1b[2J{'a' * 300}: File name too long\n"


def test_names_of_results_move_no_cursor(handgrad: Command, tmp_path: Path) -> None:
    """Nor do names in run.json, where a finished training is shown again."""
    handgrad("train", "xor", "--hidden", "3", "--epochs", "1", "--out", "run")
    head = json.loads((tmp_path / "run" / "run.json").read_text())
    (tmp_path / "run" / "run.json").write_text(json.dumps(head | {"results": {ESCAPES: 1.0}}))
    said = handgrad("train", "--resume", "run").stdout
    assert "\x1b" not in said
    assert "renamed" in said


@pytest.mark.parametrize(
    "name", ["os.system", "builtins.exec", "handgrad.cli.main", "__import__", "Layer", "Network"]
)
@pytest.mark.parametrize("place", ["layers", "loss", "optimiser", "schedule"])
def test_a_configuration_names_no_code(handgrad: Command, tmp_path: Path, place: str, name: str) -> None:
    """Only handgrad's own layers, losses, optimisers and schedules have a name there."""
    made = {
        "layers": f'[network]\nlayers = ["{name}"]',
        "loss": f'[network]\nloss = "{name}"',
        "optimiser": f'[training]\noptimiser = {{type = "{name}"}}',
        "schedule": f'[training]\nschedule = {{type = "{name}"}}',
    }
    (tmp_path / "net.toml").write_text(made[place] + "\n")
    assert f"{name!r} is unknown" in handgrad("show", "--config", "net.toml", code=1).stderr


@pytest.mark.parametrize(
    "source", ["https://example.org/rows.csv", "ftp://example.org/rows.csv", "//example.org/rows"]
)
def test_a_configuration_opens_no_address(handgrad: Command, tmp_path: Path, source: str) -> None:
    """A source is a file, a folder or a name of handgrad's own."""
    (tmp_path / "net.toml").write_text(f'[data]\nsource = "{source}"\ntarget = "t"\n')
    said = handgrad("train", "--config", "net.toml", code=1).stderr
    assert "there is no such file" in said or "no folder of this name" in said


def test_links_in_a_run_folder_lead_no_writing_elsewhere(handgrad: Command, tmp_path: Path) -> None:
    """A training into a stranger's folder replaces the links themselves, and leaves alone what they lead to."""
    outside = tmp_path / "outside"
    outside.write_text("mine")
    handgrad("train", "xor", "--hidden", "3", "--epochs", "1", "--out", "run")
    names = [path.name for path in (tmp_path / "run").iterdir()]
    for name in (*names, "checkpoint.safetensors", "snapshots.jsonl"):
        (tmp_path / "run" / name).unlink(missing_ok=True)
        (tmp_path / "run" / name).symlink_to(outside)
    handgrad("train", "xor", "--hidden", "3", "--epochs", "1", "--out", "run", "--overwrite")
    assert outside.read_text() == "mine"
    assert not any((tmp_path / "run" / name).is_symlink() for name in names)
    assert len(names) > 5


def test_a_pipe_or_a_device_in_a_run_folder_is_replaced(handgrad: Command, tmp_path: Path) -> None:
    """Through a link or not: the weights do not go to nowhere, and nobody waits for a reader of the pipe."""
    folder = tmp_path / "run"
    folder.mkdir()
    os.mkfifo(tmp_path / "pipe")
    os.mkfifo(folder / "learning_curve.png")
    (folder / "weights.safetensors").symlink_to(os.devnull)
    (folder / "config.toml").symlink_to(tmp_path / "pipe")
    handgrad("train", "xor", "--hidden", "3", "--epochs", "1", "--out", "run", "--overwrite")
    for name in ("weights.safetensors", "config.toml", "learning_curve.png"):
        assert (folder / name).lstat().st_size > 200
    assert load_run(folder).network.output_shape[-1] == 2


@pytest.mark.parametrize("name", ["new", "arriving"])
@pytest.mark.parametrize("options", [["--out", "run", "--overwrite"], ["--resume", "run"]])
def test_no_folder_within_a_run_leads_elsewhere(
    handgrad: Command, tmp_path: Path, name: str, options: list[str]
) -> None:
    """A run that is replaced is in such a folder for a while: nobody's files are moved, deleted or written there."""
    mine = tmp_path / "mine"
    shutil.copytree(RUN, tmp_path / "run")
    shutil.copytree(RUN, mine)
    before = {path: path.read_bytes() for path in mine.iterdir()}
    (tmp_path / "run" / name).symlink_to(mine)
    source = [] if "--resume" in options else ["xor"]
    said = handgrad("train", *source, *options, code=1).stderr
    assert said.startswith(f"Error: run/{name}: is a link that leads out of the folder")
    assert {path: path.read_bytes() for path in mine.iterdir()} == before


def test_event_files_go_through_no_link(tmp_path: Path) -> None:
    """A stranger's checkpoint may ask for them."""
    (tmp_path / "tensorboard").symlink_to(tmp_path, target_is_directory=True)
    with pytest.raises(RunError, match="tensorboard: is a link that leads out of the folder"):
        TensorBoard(tmp_path / "tensorboard", "accuracy")


@pytest.mark.peers
def test_a_folder_of_events_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    """So that a training goes on, with a notice."""
    (tmp_path / "tensorboard").write_text("no folder")
    board = TensorBoard(tmp_path / "tensorboard", "accuracy")
    with pytest.raises(RunError, match="tensorboard: cannot be written"):
        board(EpochRecord(1, 0.5, None, None, 0.1, 0.1))
