"""The layouts in which people write arrays: the axes of data, weights, biases, targets, scales and states."""

from __future__ import annotations

# Of each layout the axes of: data, weights, biases, targets, scales, states. n rows, i and o the sizes before and after a
# layer, c the last size, h the state's, t steps of time, l as many as there are indices; other axes are their size, and
# a dot is a number.
LAYOUTS = {
    "rows": ("n i", "i o", "o", "n c", "i", "n h"),
    "rows, weights (out, in)": ("n i", "o i", "o", "n c", "i", "n h"),
    "columns": ("i n", "o i", "o 1", "c n", "i 1", "h n"),
    "one row": ("i", "i o", "o", "c", "i", "h"),
    "one row, weights (out, in)": ("i", "o i", "o", "c", "i", "h"),
    "one column": ("i 1", "o i", "o 1", "c 1", "i 1", "h 1"),
    "N C H W": ("2 3 6 6", "4 3 3 3", "4", "labels", "3", "2 h"),
    "N H W C": ("2 6 6 3", "3 3 3 4", "1 1 1 4", "labels", "3", "2 h"),
    "C H W": ("3 6 6", "4 3 3 3", "4", "labels", "3", "h"),
    "H W": ("6 6", "3 3", ".", "labels", "6", "h"),
    "N T D": ("2 t i", "i o", "o", "labels", "i", "2 h"),
    "T N D": ("t 2 i", "i o", "o", "labels", "i", "2 h"),
    "D N T": ("i n t", "o i", "o 1", "c n t", "i", "h n"),
    "N T D, four gates": ("2 t i", "i 4o", "4h", "labels", "i", "2 h"),
    "N T D, three gates": ("2 t i", "i 3o", "3h", "labels", "i", "2 h"),
    "D N T, joined": ("i n t", "h h+x", "h 1", "c n t", "i", "h n"),
    "indices": ("index", "4 o", "o", "labels l", "i", "h"),
    "numbers": (".", ".", ".", ".", ".", "."),
    "regression": ("n i", "i", ".", "bits", "i", "n h"),
    "vectors": ("i", "vector", ".", ".", "i", "h"),
    "four gates": ("n i", "i 4o", "4h", "n c", "i", "n h"),
    "three gates": ("n i", "i 3o", "3h", "n c", "i", "n h"),
    "joined rows": ("n i", "x+h h", "h", "n c", "i", "n h"),
    "joined columns": ("i n", "h h+x", "h 1", "c n", "i 1", "h n"),
}
ROLES = ("data", "weight", "bias", "target", "scale", "state")
OTHERS = {  # tried when no layout fits as it is
    "data": "indices; n h; h i; n c; n; h; 1 i; 1 2 6 6; 2 12; n 2; positive; positive n; . ; list; "
    "t i 1; 1 1; i i; sequence",
    "weight": "i; i 1; 1 i; i i; o o; h h; h c; c h; h i; i h; i 4h; h 4h; "
    "i 3h; h 3h; 8 5; 5 8; 4 3 2 2; 4 2 2; 4 3 3; 2 2; 1 3 3 3; c; o; n; n 1",
    "bias": "1 o; i; h; c; o 1; h 1; c 1; i 1; 4 1; 4 1 1; 1 1; 1; 4h; 3h; 4h 1; 1 h; 1 c; 1 i",
    "target": "labels; bits; bits n 1; bits 1 n; .; signs; n; label; n i; n h; n 2; "
    "i n; h n; i; h; normal; labels 2 6; i 1; h 1; 1 c; list; labels t; sequence",
    "scale": "1 i; 1 3 1 1; h; 1; i 1; n 1; n",
    "state": "n i; h; 2 h; h 1",
}  # fmt: skip

INDICES = (
    "labels", "classes c", "index", "label", "labels l", "indices", "sequence", "labels 2 t",
)  # fmt: skip  # of rows of arrays
