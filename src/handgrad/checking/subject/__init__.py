"""What is checked: two functions, called alike whatever their convention, whose library, and who draws their inputs."""

from handgrad.checking.subject.subject import (
    Array,
    CheckError,
    Gradients,
    Inputs,
    Subject,
    array_of,
    closure,
    copy_of,
    widened,
)

__all__ = [
    "Array",
    "CheckError",
    "Gradients",
    "Inputs",
    "Subject",
    "array_of",
    "closure",
    "copy_of",
    "widened",
]
