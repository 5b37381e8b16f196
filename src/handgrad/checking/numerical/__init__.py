"""Whether a backward is right: the slopes of forward with their error bars, and the contract, against what it gives."""
