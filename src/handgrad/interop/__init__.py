"""Networks to and from other libraries: PyTorch's modules and files, ONNX.

Nothing of theirs is imported before a function here is called.
"""

from handgrad.interop.byte_pairs import BytePairs
from handgrad.interop.gpt2 import gpt2, load_gpt2, save_gpt2
from handgrad.interop.onnx import to_onnx
from handgrad.interop.torch import from_torch, to_torch, to_torch_loss
from handgrad.interop.weights import load_torch_weights, save_torch_weights

__all__ = [
    "BytePairs", "from_torch", "gpt2", "load_gpt2", "load_torch_weights", "save_gpt2", "save_torch_weights", "to_onnx",
    "to_torch", "to_torch_loss",
]  # fmt: skip
