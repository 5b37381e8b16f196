"""Data: sets that come with handgrad, readers of files, and what must hold of data before it is used."""

from handgrad.data.builtin import digits, mnist, moons, spirals, xor
from handgrad.data.csv_table import read_csv
from handgrad.data.dataset import Dataset, Split, Task, split
from handgrad.data.idx import read_idx
from handgrad.data.images import read_cifar, read_images
from handgrad.data.numpy_files import read_npy, read_npz
from handgrad.data.parquet_table import read_parquet
from handgrad.data.series import mackey_glass
from handgrad.data.sources import load, load_features
from handgrad.data.text import alice, read_text

__all__ = [
    "Dataset", "Split", "Task", "alice", "digits", "load", "load_features", "mackey_glass", "mnist", "moons", "read_cifar",
    "read_csv", "read_idx", "read_images", "read_npy", "read_npz", "read_parquet", "read_text", "spirals", "split", "xor",
]  # fmt: skip
