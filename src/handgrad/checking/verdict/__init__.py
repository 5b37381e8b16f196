"""Whether a backward is right: the numerical gradient of forward with error bounds, the comparison, the contract."""
