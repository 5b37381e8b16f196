"""The compiled engine: programs as native code."""

from handgrad.engines.compiled.bound import CompiledEngine

__all__ = ["CompiledEngine"]
