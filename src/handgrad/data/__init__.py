"""Data: sets that come with handgrad, readers of files, and what must hold of data before it is used."""

from handgrad.data.builtin import digits, mnist, moons, spirals, xor
from handgrad.data.csv_table import read_csv
from handgrad.data.dataset import Dataset, Split, Task, split
from handgrad.data.idx import read_idx
from handgrad.data.numpy_files import read_npy, read_npz
from handgrad.data.parquet_table import read_parquet
from handgrad.data.sources import load, load_features

__all__ = [
    "Dataset", "Split", "Task", "digits", "load", "load_features", "mnist", "moons", "read_csv",
    "read_idx", "read_npy", "read_npz", "read_parquet", "spirals", "split", "xor",
]  # fmt: skip
