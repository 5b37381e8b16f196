"""The gradients inside a backward, each judged by itself: the first line that is wrong."""

from handgrad.checking.intermediates.first_wrong import FirstWrong, RightNumbers, first_wrong

__all__ = ["FirstWrong", "RightNumbers", "first_wrong"]
