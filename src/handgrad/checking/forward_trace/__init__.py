"""A forward pass as the elementary operations that it runs, on which values, at which line."""

from handgrad.checking.forward_trace.forward_trace import ForwardTrace, is_users, trace_forward
from handgrad.checking.forward_trace.operation import Operation
from handgrad.checking.forward_trace.traced_array import UntraceableError

__all__ = ["ForwardTrace", "Operation", "UntraceableError", "is_users", "trace_forward"]
