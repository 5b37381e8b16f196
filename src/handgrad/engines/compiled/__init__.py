"""The compiled engine: programs as native code."""

from handgrad.engines.compiled.compiled_engine import CompiledEngine

__all__ = ["CompiledEngine"]
