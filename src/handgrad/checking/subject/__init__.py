"""What is checked: two functions, called alike whatever their convention, whose library, and who draws their inputs."""

from handgrad.checking.subject.subject import Array, CheckError, Gradients, Inputs, Subject
from handgrad.checking.subject.subject import array_of as array_of
from handgrad.checking.subject.subject import closure as closure
from handgrad.checking.subject.subject import copy_of as copy_of
from handgrad.checking.subject.subject import widened as widened

__all__ = ["Array", "CheckError", "Gradients", "Inputs", "Subject"]
