import numpy as np


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def lstm_cell_forward(xt, a_prev, c_prev, parameters):
    """Columns are examples: xt (n_x, m), a_prev and c_prev (n_a, m)."""
    concat = np.concatenate((a_prev, xt), axis=0)
    ft = sigmoid(parameters["Wf"] @ concat + parameters["bf"])
    it = sigmoid(parameters["Wi"] @ concat + parameters["bi"])
    cct = np.tanh(parameters["Wc"] @ concat + parameters["bc"])
    c_next = ft * c_prev + it * cct
    ot = sigmoid(parameters["Wo"] @ concat + parameters["bo"])
    a_next = ot * np.tanh(c_next)
    return a_next, c_next, (a_next, c_next, a_prev, c_prev, ft, it, cct, ot, concat, parameters)


def lstm_cell_backward(da_next, dc_next, cache):
    a_next, c_next, a_prev, c_prev, ft, it, cct, ot, concat, parameters = cache
    n_a = a_next.shape[0]
    dot = da_next * np.tanh(c_next) * ot * (1 - ot)
    dc = dc_next + da_next * ot * (1 - np.tanh(c_next) ** 2)
    dcct = dc * it * (1 - cct**2)
    dit = dc * cct * it * (1 - it)
    dft = dc * c_prev * ft * (1 - ft)
    gradients = {
        "dWf": dft @ concat.T,
        "dWi": dit @ concat.T,
        "dWc": dcct @ concat.T,
        "dWo": dot @ concat.T,
        "dbf": dft.sum(axis=1, keepdims=True),
        "dbi": dit.sum(axis=1, keepdims=True),
        "dbc": dcct.sum(axis=1, keepdims=True),
        "dbo": dot.sum(axis=1, keepdims=True),
    }
    dconcat = (
        parameters["Wf"].T @ dft + parameters["Wi"].T @ dit + parameters["Wc"].T @ dcct + parameters["Wo"].T @ dot
    )
    gradients["da_prev"] = dconcat[:n_a]
    gradients["dxt"] = dconcat[n_a:]
    gradients["dc_prev"] = dc * ft
    return gradients
