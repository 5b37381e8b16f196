"""A forward pass as the elementary operations that it runs, on which values, at which line."""

from handgrad.checking.forward_trace.forward_trace import Array, ForwardTrace, trace_forward
from handgrad.checking.forward_trace.traced_array import UntraceableError
from handgrad.checking.forward_trace.tracer import ELEMENTWISE, Operation

__all__ = ["ELEMENTWISE", "Array", "ForwardTrace", "Operation", "UntraceableError", "trace_forward"]
