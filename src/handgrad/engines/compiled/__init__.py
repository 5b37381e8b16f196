"""The compiled engine: programs as native code."""

from handgrad.engines.compiled.engine import CompiledEngine

__all__ = ["CompiledEngine"]
