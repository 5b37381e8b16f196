"""What several folders of tests share."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(scope="session")
def torch() -> Any:
    """PyTorch, for tests marked ``peers``; where they are selected and it is missing, they fail."""
    import torch

    torch.set_num_threads(1)
    return torch
