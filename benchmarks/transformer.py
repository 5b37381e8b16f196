"""A character GPT beside PyTorch and JAX: a training step of AdamW with clipped gradients, float32.

    taskset -c 0 python benchmarks/transformer.py        one processor: times are then processor times
    python benchmarks/transformer.py                     all processors

Four blocks of width 128 with 4 heads on 16 texts of 128 characters, and two on 4 texts of 512. Peers take turns in
processes of their own, as in `engines.py`; a ratio is the median of the rounds' ratios to handgrad's compiled engine.
``products`` are the products of matrices of handgrad's own program alone.
"""

from __future__ import annotations

from convolution import main
from peers.texts import PEERS, WORKLOADS

if __name__ == "__main__":
    main(__doc__, WORKLOADS, PEERS)
