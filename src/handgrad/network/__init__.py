"""Layers, a loss and their arrays in one object that people hold."""

from handgrad.network.network import Network

__all__ = ["Network"]
