"""An LSTM over sequences beside PyTorch and JAX: a training step of Adam, float32.

    taskset -c 0 python benchmarks/recurrence.py        one processor: times are then processor times
    python benchmarks/recurrence.py                     all processors

Width 128, 64 times, batches of 32; a linear layer takes the last time. Peers take turns in processes of their own, as in
`engines.py`; a ratio is the median of the rounds' ratios to handgrad's compiled engine. ``products`` are the products of
matrices of handgrad's own program alone.
"""

from __future__ import annotations

from convolution import main
from peers.sequences import PEERS, WORKLOADS

if __name__ == "__main__":
    main(__doc__, WORKLOADS, PEERS)
