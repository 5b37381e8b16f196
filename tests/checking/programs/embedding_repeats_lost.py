import numpy as np


def lookup_forward(tokens, table):
    cache = {"tokens": tokens, "table": table}
    return table[tokens], cache


def lookup_backward(dvectors, cache):
    dtable = np.zeros_like(cache["table"])
    dtable[cache["tokens"]] += dvectors
    return dtable
