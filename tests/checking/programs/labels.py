"""What is wrong with each program beside this file, fixed before any checker had seen one of them.

A program is code as people write it: it imports nothing of handgrad. Its label states the shape of its interface, the
fair names of its mistake (the best first; none: it is right), the gradients that are wrong, a piece of the line that
is wrong first, and ``call``: how its author runs it. ``loss`` and ``gradients`` prove the label by central differences:
``gradients`` gives, by name, an array that the loss depends on and the program's gradient of it. ``GIVEN`` is what its
author gives to `handgrad.check`, in the names of ``call``: the functions or the object, and one example of the inputs.
"""

from __future__ import annotations

from typing import NamedTuple


class Label(NamedTuple):
    """What a program is, and what is wrong with it."""

    name: str
    shape: str
    call: str
    loss: str
    gradients: str
    codes: tuple[str, ...] = ()
    where: tuple[str, ...] = ()
    line: str = ""
    remark: str = ""  # no mistake in the mathematics, but a contract is broken


def _cache(name, inputs, forward, backward, names, codes=(), where=(), line="", remark=""):
    """A pair of functions with a cache between them."""
    call = f"{inputs}\nout, cache = {forward}\ndout = rng.normal(size=out.shape)\ngrads = {backward}"
    pairs = ", ".join(f"{n!r}: ({n}, grads[{k}])" for k, n in enumerate(names))
    gradients = f"{names[0]!r}: ({names[0]}, grads)" if len(names) == 1 else pairs
    return Label(name, "cache", call, f"np.sum(({forward})[0] * dout)", f"{{{gradients}}}", codes, where, line, remark)


def _layer(name, make, x, gradients, codes=(), where=(), line="", remark="", forward="layer.forward(x)",
           backward="layer.backward(dout.copy())", shape="class"):  # fmt: skip
    """A layer object: forward, then backward; its gradients by name."""
    call = f"layer = {make}\nx = {x}\nout = {forward}\ndout = rng.normal(size=np.shape(out))\ndx = {backward}"
    return Label(name, shape, call, f"np.sum({forward} * dout)", gradients, codes, where, line, remark)


N = "rng.normal(size="
_XWB = f"x, w, b = {N}(5, 3)), {N}(3, 4)), {N}4)"
_BN = f"x, gamma, beta = {N}(6, 4)), {N}4), {N}4)"

LABELS = (
    # functions with a cache
    _cache("affine_pair", _XWB, "affine_forward(x, w, b)", "affine_backward(dout, cache)", "xwb"),
    _cache("affine_images", f"x, w, b = {N}(5, 3, 2, 2)), {N}(12, 4)), {N}4)", "fc_forward(x, w, b)",
           "fc_backward(dout, cache)", "xwb", ("batch-mean-vs-sum",), ("b",), "db = dout.mean(axis=0)"),
    _cache("relu_cache_inplace", f"x = {N}(5, 4))", "relu_forward(x)", "relu_backward(dout.copy(), cache)", "x",
           remark="backward writes into dout"),
    _cache("leaky_cache", f"z = {N}(5, 4))", "leaky_relu_forward(z, 0.3)", "leaky_relu_backward(dout, cache)", "z"),
    Label("dense_course", "cache",
          f"A_prev, W, b = {N}(3, 6)), {N}(4, 3)), {N}(4, 1))\n"
          "A, cache = linear_activation_forward(A_prev, W, b, 'sigmoid')\ndA = rng.normal(size=A.shape)\n"
          "dA_prev, dW, db = linear_activation_backward(dA, cache, 'sigmoid')",
          "np.sum(linear_activation_forward(A_prev, W, b, 'sigmoid')[0] * dA)",
          "{'A_prev': (A_prev, dA_prev), 'W': (W, dW), 'b': (b, db.reshape(b.shape))}",
          remark="db is (4,) where b is (4, 1)"),
    Label("deep_course_twice", "cache",
          f"X, W1, b1, W2, b2 = {N}(3, 7)), {N}(4, 3)), {N}(4, 1)), {N}(1, 4)), {N}(1, 1))\n"
          "Y = rng.integers(0, 2, (1, 7)).astype(float)\n"
          "cost, caches = forward_and_cost(X, W1, b1, W2, b2, Y)\ngrads = backward(Y, caches)",
          "forward_and_cost(X, W1, b1, W2, b2, Y)[0]",
          "{'W1': (W1, grads['dW1']), 'b1': (b1, grads['db1']), 'W2': (W2, grads['dW2']), 'b2': (b2, grads['db2'])}",
          ("batch-mean-vs-sum",), ("W1", "b1", "W2", "b2"), "dW2 = dZ2 @ A1.T / m"),
    Label("deep_course_right", "cache",
          f"X, Y = {N}(3, 7)), rng.integers(0, 2, (1, 7)).astype(float)\nparameters = initialise(3, 4, 1)\n"
          "A2, cache = forward_propagation(X, parameters)\ncost = compute_cost(A2, Y)\n"
          "grads = backward_propagation(parameters, cache, X, Y)",
          "compute_cost(forward_propagation(X, parameters)[0], Y)",
          "{k: (parameters[k], grads['d' + k]) for k in parameters}"),
    _cache("batchnorm_staged", _BN, "batchnorm_forward(x, gamma, beta)", "batchnorm_backward(dout, cache)",
           ("x", "gamma", "beta")),
    _cache("batchnorm_no_mean_path", _BN, "bn_forward(x, gamma, beta)", "bn_backward(dout, cache)",
           ("x", "gamma", "beta"), ("missing-term",), ("x",), "dx = (dz - z"),
    _cache("batchnorm_frozen", _BN, "batchnorm_forward(x, gamma, beta)", "batchnorm_backward(dout, cache)",
           ("x", "gamma", "beta"), ("missing-term",), ("x",), "dx = dout * gamma / np.sqrt"),
    _cache("layernorm_cache", _BN, "layernorm_forward(x, gamma, beta)", "layernorm_backward(dout, cache)",
           ("x", "gamma", "beta")),
    _cache("layernorm_wrong_axis", _BN, "ln_fwd(x, gamma, beta)", "ln_bwd(dout, cache)",
           ("x", "gamma", "beta"), ("wrong-axis",), ("x",), "dx = inv * (dh - dh.mean(0"),
    _cache("dropout_scale_lost", f"x = {N}(5, 6))", "dropout_forward(x)", "dropout_backward(dout, cache)", "x",
           ("constant-factor", "missing-local-derivative"), ("x",), "dx = dout * mask"),
    _cache("dropout_right", f"x = {N}(5, 6))", "dropout_forward(x, {'p': 0.7, 'mode': 'train', 'seed': 3})",
           "dropout_backward(dout, cache)", "x"),
    _cache("softmax_jacobian_cache", f"z = {N}(5, 4))", "softmax_forward(z)", "softmax_backward(dout, cache)", "z"),
    _cache("softmax_diagonal_only", f"z = {N}(5, 4))", "softmax_forward(z)", "softmax_backward(dout, cache)", "z",
           ("missing-term",), ("z",), "return dprobs * probs * (1 - probs)"),
    _cache("softmax_wrong_axis_cache", f"z = {N}(4, 4))", "attention_weights_forward(z)",
           "attention_weights_backward(dout, cache)", "z", ("wrong-axis",), ("z",), "axis=0, keepdims=True)"),
    _cache("rnn_step", f"x, h, U, V, b = {N}(5, 3)), {N}(5, 4)), {N}(3, 4)), {N}(4, 4)), {N}4)",
           "rnn_step_forward(x, h, U, V, b)", "rnn_step_backward(dout, cache)", "xhUVb"),
    _cache("rnn_whole_overwrites", f"x, h, U, V, b = {N}(2, 5, 3)), {N}(2, 4)), {N}(3, 4)), {N}(4, 4)), {N}4)",
           "rnn_forward(x, h, U, V, b)", "rnn_backward(dout, cache)", "xhUVb",
           ("overwritten-not-accumulated",), ("V",), "dWh = prev.T @ dz"),
    _cache("rnn_whole_truncated", f"x, h, U, V, b = {N}(5, 2, 3)), {N}(2, 4)), {N}(3, 4)), {N}(4, 4)), {N}4)",
           "rnn_forward(x, h, U, V, b)", "rnn_backward(dout, cache)", "xhUVb",
           ("missing-term",), ("x", "h", "U", "V", "b"), "dz = dh[t] * (1 - h[t] ** 2)"),
    Label("lstm_step_gates", "cache",
          f"x, h, c, U, V, b = {N}(5, 3)), {N}(5, 4)), {N}(5, 4)), {N}(3, 16)), {N}(4, 16)), {N}16)\n"
          "next_h, next_c, cache = lstm_step_forward(x, h, c, U, V, b)\n"
          f"dnext_h, dnext_c = {N}(5, 4)), {N}(5, 4))\ngrads = lstm_step_backward(dnext_h, dnext_c, cache)",
          "sum(np.sum(a * d) for a, d in zip(lstm_step_forward(x, h, c, U, V, b), (dnext_h, dnext_c)))",
          "{n: (a, g) for n, a, g in zip('xhcUVb', (x, h, c, U, V, b), grads)}",
          ("swapped-gradients", "wrong-local-derivative"), ("x", "h", "U", "V", "b"), "di = dc * prev_c"),
    Label("lstm_step_right", "cache",
          f"xt, a_prev, c_prev = {N}(3, 6)), {N}(4, 6)), {N}(4, 6))\n"
          f"parameters = {{n: {N}(4, 7) if n[0] == 'W' else (4, 1)) for n in ('Wf', 'bf', 'Wi', 'bi', 'Wc', 'bc', 'Wo', 'bo')}}\n"
          "a_next, c_next, cache = lstm_cell_forward(xt, a_prev, c_prev, parameters)\n"
          f"da_next, dc_next = {N}(4, 6)), {N}(4, 6))\ngrads = lstm_cell_backward(da_next, dc_next, cache)",
          "sum(np.sum(a * d) for a, d in zip(lstm_cell_forward(xt, a_prev, c_prev, parameters), (da_next, dc_next)))",
          "{'xt': (xt, grads['dxt']), 'a_prev': (a_prev, grads['da_prev']), 'c_prev': (c_prev, grads['dc_prev'])}"
          " | {n: (parameters[n], grads['d' + n]) for n in parameters}"),
    _cache("conv_loops", f"x, w, b = {N}(2, 2, 5, 5)), {N}(3, 2, 3, 3)), {N}3)",
           "conv_forward_naive(x, w, b, {'stride': 2, 'pad': 1})", "conv_backward_naive(dout, cache)", "xwb"),
    _cache("conv_overlap_lost", f"x, w, b = {N}(2, 5, 6)), {N}(3, 2, 2)), {N}3)", "conv_forward(x, w, b)",
           "conv_backward(dout, cache)", "xwb", ("overwritten-not-accumulated",), ("x",), "dimages[:, r : r + k, c : c + k] = "),
    _cache("maxpool_loops", f"x = {N}(2, 3, 5, 5))", "max_pool_forward(x, 3, 2)", "max_pool_backward(dout, cache)", "x"),
    _cache("avgpool_share", f"x = {N}(2, 4, 6, 3))", "avg_pool_forward(x, 2)", "avg_pool_backward(dout, cache)", "x",
           ("constant-factor", "missing-local-derivative"), ("x",), "dx = np.repeat(np.repeat("),
    _cache("embedding_cache", f"tokens, W = rng.integers(0, 6, (3, 5)), {N}(6, 4))", "word_embedding_forward(tokens, W)",
           "word_embedding_backward(dout, cache)", "W"),
    _cache("embedding_repeats_lost", f"tokens, W = rng.integers(0, 4, 9), {N}(4, 5))", "lookup_forward(tokens, W)",
           "lookup_backward(dout, cache)", "W", ("overwritten-not-accumulated",), ("W",), 'dtable[cache["tokens"]] += dvectors'),
    _cache("embedding_bag_share", "token_ids = rng.integers(0, 20, (4, 5))", "forward(token_ids)", "backward(dout, cache)", "EWb",
           ("batch-mean-vs-sum", "constant-factor"), ("E",), "np.add.at(dE, token_ids"),
    # classes with state
    _layer("layer_dense_self", "Dense(3, 4)", f"{N}(5, 3))", "{'x': (x, dx), 'W': (layer.W, layer.dW), 'b': (layer.b, layer.db)}"),
    _layer("layer_dense_updates_first", "FullyConnected(3, 4)", f"{N}(5, 3))", "{'x': (x, dx)}",
           ("stale-or-mutated-state",), ("x",), "self.weights -= learning_rate * weights_error",
           backward="__import__('copy').deepcopy(layer).backward(dout, 0.1)"),
    _layer("layer_dense_column", "Layer(3, 4)", f"{N}(3, 1))", "{'x': (x, dx), 'weights': (layer.weights, (layer.weights - after.weights) / 0.1),"
           " 'bias': (layer.bias, (layer.bias - after.bias) / 0.1)}",
           backward="(after := __import__('copy').deepcopy(layer)).backward(dout, 0.1)", shape="updates"),
    _layer("layer_dense_bias_mean", "Affine(rng.normal(size=(3, 4)), rng.normal(size=4))", f"{N}(5, 3))",
           "{'x': (x, dx), 'W': (layer.W, layer.dW), 'b': (layer.b, layer.db)}", ("batch-mean-vs-sum",), ("b",), "self.db = np.mean(dout, axis=0)"),
    _layer("layer_grads_list", "MatMul(rng.normal(size=(3, 4)))", f"{N}(5, 3))", "{'x': (x, dx), 'W': (layer.params[0], layer.grads[0])}"),
    _layer("layer_grads_dict", "Linear(3, 4, rng)", f"{N}(5, 3))",
           "{'x': (x, dx), 'w': (layer.params['w'], layer.grads['w']), 'b': (layer.params['b'], layer.grads['b'])}",
           ("batch-mean-vs-sum",), ("w",), 'self.grads["w"].T / len(dy)'),
    _layer("layer_square_weights", "Hidden(4)", f"{N}(5, 4))", "{'x': (x, dx), 'W': (layer.W, layer.dW)}",
           ("transposed",), ("x",), "return dh_out @ self.W"),
    _layer("layer_relu_class", "Relu()", f"{N}(5, 4))", "{'x': (x, dx)}", remark="backward writes into dout"),
    _layer("layer_sigmoid_at_input", "Sigmoid()", f"{N}(5, 4))", "{'x': (x, dx)}",
           ("wrong-evaluation-point",), ("x",), "return dout * self.x * (1 - self.x)"),
    _layer("layer_sigmoid_right", "Sigmoid()", f"{N}(5, 4))", "{'x': (x, dx)}"),
    _layer("layer_tanh_twice", "Tanh()", f"{N}(5, 4))", "{'x': (x, dx)}", ("wrong-evaluation-point",), ("x",),
           "return da * (1 - np.tanh(self.a) ** 2)", forward="layer(x)"),
    _layer("layer_activation_strategy", "Tanh()", f"{N}(5, 4))", "{'x': (x, dx)}"),
    _layer("layer_softmax_class", "Softmax()", f"{N}(4, 1))", "{'x': (x, dx)}"),
    Label("layer_softmax_loss", "class",
          f"layer, x, t = SoftmaxWithLoss(), {N}(5, 4)), rng.integers(0, 4, 5)\nloss = layer.forward(x, t)\ndx = layer.backward()",
          "layer.forward(x, t)", "{'x': (x, dx)}", remark="right up to the 1e-7 inside the logarithm"),
    Label("layer_softmax_loss_sum", "class",
          f"layer, x, t = CrossEntropy(), {N}(5, 4)), np.eye(4)[rng.integers(0, 4, 5)]\nloss = layer.forward(x, t)\ndx = layer.backward()",
          "layer.forward(x, t)", "{'x': (x, dx)}", ("batch-mean-vs-sum",), ("x",), "return self.p - self.onehot"),
    Label("layer_mse_class", "class",
          f"layer, x, t = MSE(), {N}(5, 3)), {N}(5, 3))\nloss = layer(x, t)\ndx = layer.backward()",
          "layer(x, t)", "{'x': (x, dx)}", ("constant-factor", "wrong-axis"), ("x",), "self.diff.shape[0]"),
    Label("layer_mse_sign", "class",
          f"layer, y_pred, y_true = MeanSquaredError(), {N}(5, 3)), {N}(5, 3))\nloss = layer.loss(y_true, y_pred)\ndx = layer.gradient(y_true, y_pred)",
          "layer.loss(y_true, y_pred)", "{'y_pred': (y_pred, dx)}", ("wrong-sign",), ("y_pred",), "return y_true - y_pred"),
    Label("layer_bce_right", "class",
          "layer, y_pred, y_true = BinaryCrossEntropy(), rng.uniform(0.1, 0.9, (5, 2)), rng.integers(0, 2, (5, 2))\n"
          "loss = layer.loss(y_true, y_pred)\ndx = layer.grad(y_true, y_pred)",
          "layer.loss(y_true, y_pred)", "{'y_pred': (y_pred, dx)}"),
    _layer("layer_batchnorm_class", "BatchNorm1d(4)", f"{N}(6, 4))",
           "{'x': (x, dx), 'gamma': (layer.gamma, layer.dgamma), 'beta': (layer.beta, layer.dbeta)}"),
    _layer("layer_batchnorm_var_power", "BatchNormalization(4)", f"2 * {N}(6, 4))",
           "{'x': (x, dx), 'gamma': (layer.gamma, layer.dgamma), 'beta': (layer.beta, layer.dbeta)}",
           ("wrong-local-derivative", "missing-local-derivative"), ("x",), "dvar = np.sum(dX_norm * centred"),
    Label("layer_dropout_class", "class",
          f"layer, x, dout = Dropout(0.4), {N}(5, 6)), {N}(5, 6))\nout = layer.forward(x)\ndx = layer.backward(dout)",
          "np.sum(Dropout(0.4).forward(x) * dout)", "{'x': (x, dx)}"),
    _layer("layer_dropout_draws_again", "Dropout()", f"{N}(5, 6))", "{'x': (x, dx)}", ("nondeterministic",), ("x",),
           "return da * self._mask(da.shape)", forward="(np.random.seed(5), layer.forward(x))[1]", backward="layer.backward(dout)"),
    _layer("layer_residual", "ResidualBlock(4)", f"{N}(5, 4))", "{'x': (x, dx), 'w1': (layer.w1, layer.g_w1), 'w2': (layer.w2, layer.g_w2)}",
           ("missing-term",), ("x",), "return gh @ self.w1.T"),
    _layer("layer_scale_shift", "ScaleShift(4)", f"{N}(5, 4))",
           "{'x': (x, dx), 'scale': (layer.scale, layer.scale_grad), 'shift': (layer.shift, layer.shift_grad)}",
           ("broadcast-not-summed", "wrong-shape"), ("scale",), "self.scale_grad = g * self.inp"),
    _layer("layer_prelu", "PReLU(4)", f"{N}(5, 4))", "{'x': (x, dx), 'a': (layer.a, layer.grad_a)}"),
    _layer("layer_softplus_wrong", "Softplus()", f"{N}(5, 4))", "{'x': (x, dx)}",
           ("wrong-local-derivative", "wrong-sign", "wrong-evaluation-point"), ("x",), "return upstream / (1 + np.exp(self.z))"),
    _layer("layer_gelu_right", "GELU()", f"{N}(5, 4))", "{'x': (x, dx)}"),
    _layer("layer_swish_product_rule", "Swish()", f"{N}(5, 4))", "{'x': (x, dx)}", ("missing-term",), ("x",),
           "return dy * self.x * self.s * (1 - self.s)"),
    _layer("layer_elu_class", "ELU()", f"{N}(5, 4))", "{'x': (x, dx)}",
           ("missing-local-derivative", "constant-factor", "wrong-local-derivative"), ("x",), "np.exp(self.x))"),
    _layer("layer_flatten_reshape", "Reshape((2, 3, 4), (24,))", f"{N}(5, 2, 3, 4))", "{'x': (x, dx)}"),
    _layer("layer_conv_class", "Conv2D(2, 3, 3)", f"{N}(2, 2, 6, 5))", "{'x': (x, dx), 'w': (layer.w, layer.dw), 'b': (layer.b, layer.db)}"),
    _layer("layer_conv_unflipped", "Convolution(2, 3)", f"{N}(6, 6))", "{'x': (x, dx), 'kernels': (layer.kernels, layer.kernels_gradient)}",
           ("transposed", "wrong-axis", "wrong-local-derivative"), ("x",), "input_gradient += correlate_full(g, kernel)"),
    _layer("layer_maxpool_class", "MaxPool(2)", f"{N}(2, 4, 6))", "{'x': (x, dx)}"),
    _layer("layer_pool_routes_index", "MaxPool1D(3)", f"{N}(2, 12))", "{'x': (x, dx)}",
           ("wrong-axis", "swapped-gradients", "wrong-local-derivative"), ("x",), "dx[n, g + self.where[n, g]] += d[n, g]"),
    Label("layer_embedding_class", "class",
          f"layer, x = Embedding({N}(6, 4))), rng.integers(0, 6, 9)\nout = layer.forward(x)\ndout = {N}(9, 4))\nlayer.backward(dout)",
          "np.sum(layer.forward(x) * dout)", "{'W': (layer.params[0], layer.grads[0])}"),
    Label("layer_attention_scale", "class",
          f"layer, q, k, v = Attention(), {N}(5, 4)), {N}(6, 4)), {N}(6, 3))\nout = layer.forward(q, k, v)\ndout = {N}(5, 3))\n"
          "dq, dk, dv = layer.backward(dout)",
          "np.sum(layer.forward(q, k, v) * dout)", "{'q': (q, dq), 'k': (k, dk), 'v': (v, dv)}",
          ("missing-local-derivative", "constant-factor"), ("q", "k"), "ds = self.p * (dp - "),
    _layer("layer_attention_right", "CausalSelfAttention(4)", f"{N}(6, 4))",
           "{'x': (x, dx), 'Wq': (layer.Wq, layer.dWq), 'Wk': (layer.Wk, layer.dWk), 'Wv': (layer.Wv, layer.dWv)}"),
    Label("layer_gru_class", "class",
          f"layer, x, h = GRUCell(3, 4), {N}(5, 3)), {N}(5, 4))\nout = layer.forward(x, h)\ndout = {N}(5, 4))\ndx, dh = layer.backward(dout)",
          "np.sum(layer.forward(x, h) * dout)",
          "{'x': (x, dx), 'h': (h, dh)} | {n: (getattr(layer, n), getattr(layer, 'd' + n)) for n in ('Wz', 'Wr', 'Wn', 'Uz', 'Ur', 'Un')}",
          ("missing-term",), ("h",), "dh = dout * self.z + daz"),
    Label("net_two_layer_self", "class",
          f"net, X, y = TwoLayerNet(3, 5, 4), {N}(6, 3)), rng.integers(0, 4, 6)\nloss, grads = net.loss(X, y, reg=0.05)",
          "net.loss(X, y, reg=0.05)[0]", "{n: (net.params[n], grads[n]) for n in net.params}",
          ("constant-factor", "missing-term"), ("W1", "W2"), '+ reg * W2'),
    Label("net_nabla_lists", "class",
          f"net, x, y = Network([3, 5, 4, 2]), {N}(3, 1)), rng.uniform(size=(2, 1))\ncost = net.cost(x, y)\nnabla_b, nabla_w = net.backprop(x, y)",
          "net.cost(x, y)", "{f'w{i}': p for i, p in enumerate(zip(net.weights, nabla_w))} | {f'b{i}': p for i, p in enumerate(zip(net.biases, nabla_b))}"),
    Label("net_nabla_off_by_one", "class",
          f"net, x, y = MLP([3, 3, 3, 3]), {N}(3, 1)), rng.uniform(size=(3, 1))\ncost = net.cost(x, y)\ndW, db = net.gradients(x, y)",
          "net.cost(x, y)", "{f'W{i}': p for i, p in enumerate(zip(net.W, dW))} | {f'b{i}': p for i, p in enumerate(zip(net.b, db))}",
          ("wrong-evaluation-point",), ("W0", "W1", "b0", "b1"), "* dsigma(zs[k])"),
    Label("net_layers_container", "class",
          f"net = small_net()\nx, dout = {N}(5, 4)), {N}(5, 3))\nout = net.forward(x)\ndx = net.backward(dout)\nfirst, _, last = net.layers",
          "np.sum(net.forward(x) * dout)",
          "{'x': (x, dx), 'W1': (first.weight, first.grad_weight), 'b1': (first.bias, first.grad_bias), 'W2': (last.weight, last.grad_weight)}"),
    Label("net_container_skips_activation", "class",
          f"net = Net([3, 5, 4, 2])\nx, dout = {N}(6, 3)), {N}(6, 2))\nout = net.forward(x)\ndx = net.backward(dout)",
          "np.sum(net.forward(x) * dout)", "{'x': (x, dx)} | {f'{n}{i}': (getattr(layer, n), getattr(layer, 'd' + n)) for i, layer in enumerate(net.layers) for n in 'Wc'}",
          ("missing-local-derivative",), ("x", "W0", "W1", "c0", "c1"), "g = g @ layer.W.T"),
    # loss and gradients in one call
    Label('loss_linear_regression', 'loss',
          'theta, X, y = rng.normal(size=3), rng.normal(size=(7, 3)), rng.normal(size=7)\n'
          'J, grad = cost_and_gradient(theta, X, y)',
          'cost_and_gradient(theta, X, y)[0]',
          "{'theta': (theta, grad)}"),
    Label('loss_linear_regression_half', 'loss',
          'w, b, X, y = rng.normal(size=3), rng.normal(size=1), rng.normal(size=(7, 3)), rng.normal(size=7)\n'
          'loss, grads = loss_and_grad(w, b, X, y)',
          'loss_and_grad(w, b, X, y)[0]',
          "{'w': (w, grads['w']), 'b': (b, np.reshape(grads['b'], 1))}",
          ('constant-factor',), ('w', 'b'), 'dw = X.T @ residual / n'),
    Label('loss_ridge_bias', 'loss',
          'theta, X, y = rng.normal(size=4), np.c_[np.ones(7), rng.normal(size=(7, 3))], rng.normal(size=7)\n'
          'J, grad = ridge(theta, X, y)',
          'ridge(theta, X, y)[0]',
          "{'theta': (theta, grad)}",
          ('extra-term',), ('theta',), 'grad = grad + lam / m * theta'),
    Label('loss_logistic_right', 'loss',
          'w, b, X, Y = rng.normal(size=(3, 1)), 0.3, rng.normal(size=(3, 7)), rng.integers(0, 2, (1, 7))\n'
          'grads, cost = propagate(w, b, X, Y)',
          'propagate(w, b, X, Y)[1]',
          "{'w': (w, grads['dw'])}"),
    Label('loss_logistic_averaged', 'loss',
          'w, b, X, y = rng.normal(size=3), 0.3, rng.normal(size=(7, 3)), rng.integers(0, 2, 7)\n'
          'loss, dw, db = logistic(w, b, X, y)',
          'logistic(w, b, X, y)[0]',
          "{'w': (w, dw)}",
          ('averaged-batch',), ('w',), 'dw = np.mean(X, axis=0) * error'),
    Label('loss_logistic_no_l2', 'loss',
          'w, b, X, y = rng.normal(size=3), rng.normal(size=1), rng.normal(size=(7, 3)), rng.choice([-1, 1], 7)\n'
          'loss, (dw, db) = log_reg((w, b), X, y)',
          'log_reg((w, b), X, y)[0]',
          "{'w': (w, dw), 'b': (b, np.reshape(db, 1))}",
          ('missing-term',), ('w',), 'return loss, (X.T @ coefficient'),
    Label('loss_svm_naive', 'loss',
          'W, X, y = rng.normal(size=(3, 4)), rng.normal(size=(7, 3)), rng.integers(0, 4, 7)\n'
          'loss, dW = svm_loss_naive(W, X, y, 0.1)',
          'svm_loss_naive(W, X, y, 0.1)[0]',
          "{'W': (W, dW)}"),
    Label('loss_svm_vectorised_count', 'loss',
          'W, X, y = rng.normal(size=(3, 4)), rng.normal(size=(7, 3)), rng.integers(0, 4, 7)\n'
          'loss, dW = svm_loss(W, X, y)',
          'svm_loss(W, X, y)[0]',
          "{'W': (W, dW)}",
          ('missing-term', 'wrong-local-derivative', 'broadcast-not-summed', 'constant-factor'), ('W',), 'hits[np.arange(N), y] = -1'),
    Label('loss_softmax_naive_divide', 'loss',
          'W, X, y = rng.normal(size=(3, 4)), rng.normal(size=(7, 3)), rng.integers(0, 4, 7)\n'
          'loss, dW = softmax_loss_naive(W, X, y, 0.1)',
          'softmax_loss_naive(W, X, y, 0.1)[0]',
          "{'W': (W, dW)}",
          ('batch-mean-vs-sum',), ('W',), 'dW += reg * W'),
    Label('loss_softmax_vectorised', 'loss',
          'W, X, y = rng.normal(size=(3, 4)), rng.normal(size=(7, 3)), rng.integers(0, 4, 7)\n'
          'loss, dW = softmax_loss_vectorized(W, X, y, 0.1)',
          'softmax_loss_vectorized(W, X, y, 0.1)[0]',
          "{'W': (W, dW)}"),
    Label('loss_two_layer_dict', 'loss',
          "params = {'W1': rng.normal(size=(3, 5)), 'b1': rng.normal(size=5), 'W2': rng.normal(size=(5, 2)), 'b2': rng.normal(size=2)}\n"
          'X, T = rng.normal(size=(7, 3)), rng.normal(size=(7, 2))\n'
          'loss, grads = two_layer(params, X, T)',
          'two_layer(params, X, T)[0]',
          '{k: (params[k], grads[k]) for k in params}',
          ('wrong-evaluation-point',), ('W1', 'b1'), 'dz1 = da1 * (1 - z1**2)'),
    Label('loss_deep_nested', 'loss',
          'layers, x, target = init([3, 6, 5, 2]), rng.normal(size=(7, 3)), rng.normal(size=(7, 2))\n'
          'loss, grads = value_and_grad(layers, x, target)',
          'value_and_grad(layers, x, target)[0]',
          "{f'{k}{i}': (layer[k], grads[i][k]) for i, layer in enumerate(layers) for k in 'Wb'}"),
    Label('loss_deep_list_l2', 'loss',
          'weights, x, labels = [rng.normal(size=(3, 5)), rng.normal(size=(5, 6)), rng.normal(size=(6, 4))], rng.normal(size=(7, 3)), rng.integers(0, 4, 7)\n'
          'loss, grads = objective(weights, x, labels)',
          'objective(weights, x, labels)[0]',
          "{f'W{i}': p for i, p in enumerate(zip(weights, grads))}",
          ('constant-factor', 'extra-term'), ('W0', 'W1', 'W2'), 'grads.append(h.T @ delta + 2 * decay * W)'),
    Label('loss_huber', 'loss',
          'pred, target = 2 * rng.normal(size=(5, 3)), rng.normal(size=(5, 3))\n'
          'loss, grad = huber(pred, target)',
          'huber(pred, target)[0]',
          "{'pred': (pred, grad)}",
          ('wrong-sign', 'wrong-local-derivative', 'missing-local-derivative'), ('pred',), 'grad = np.where(small, r, delta)'),
    Label('loss_kl_logsoftmax', 'loss',
          'x, p = rng.normal(size=(5, 4)), rng.dirichlet(np.ones(4), 5)\n'
          'loss, dx = kl_loss(x, p)',
          'kl_loss(x, p)[0]',
          "{'x': (x, dx)}",
          ('missing-term', 'wrong-local-derivative', 'broadcast-not-summed'), ('x',), 'dlogits = dlogq - np.exp(logq) * dlogq'),
    Label('loss_matrix_factorisation', 'loss',
          'U, V, R, mask = rng.normal(size=(5, 3)), rng.normal(size=(6, 3)), rng.normal(size=(5, 6)), rng.integers(0, 2, (5, 6))\n'
          'loss, dU, dV = mf_loss(U, V, R, mask)',
          'mf_loss(U, V, R, mask)[0]',
          "{'U': (U, dU), 'V': (V, dV)}"),
    Label('loss_autoencoder_tied', 'loss',
          'W, b, c, X = rng.normal(size=(5, 3)), rng.normal(size=3), rng.normal(size=5), rng.normal(size=(7, 5))\n'
          'loss, (dW, db, dc) = autoencoder(W, b, c, X)',
          'autoencoder(W, b, c, X)[0]',
          "{'W': (W, dW), 'b': (b, db), 'c': (c, dc)}",
          ('missing-term', 'overwritten-not-accumulated'), ('W',), 'dW = X.T @ dZ'),
    Label('loss_word2vec', 'loss',
          'v, u, U = rng.normal(size=4), rng.normal(size=4), rng.normal(size=(6, 4))\n'
          'loss, dv, du, dU = neg_sampling(v, u, U)',
          'neg_sampling(v, u, U)[0]',
          "{'v': (v, dv), 'u': (u, du), 'U': (U, dU)}"),
    # networks that update themselves
    Label('train_xor_class', 'updates',
          'import copy\n'
          'X, y = rng.normal(size=(6, 3)), rng.uniform(size=(6, 1))\n'
          'net = NeuralNetwork(X, y)\n'
          'net.feedforward()\n'
          'after = copy.deepcopy(net)\n'
          'after.backprop()',
          '(net.feedforward(), net.error())[1]',
          "{n: (getattr(net, n), getattr(net, n) - getattr(after, n)) for n in ('weights1', 'weights2')}"),
    Label('train_updates_too_early', 'updates',
          'import copy\n'
          'net, x, t = Net(3, 5, 2), rng.normal(size=(6, 3)), rng.normal(size=(6, 2))\n'
          'after = copy.deepcopy(net)\n'
          'after.train_step(x, t)',
          'net.loss(x, t)',
          "{n: (getattr(net, n), (getattr(net, n) - getattr(after, n)) / net.lr) for n in ('W1', 'W2')}",
          ('stale-or-mutated-state',), ('W1',), 'self.W2 -= self.lr * h.T @ error'),
    Label('train_right_sgd', 'updates',
          'import copy\n'
          'net, X, y = Regressor(3, 5), rng.normal(size=(6, 3)), rng.normal(size=6)\n'
          'after = copy.deepcopy(net)\n'
          'after.fit_batch(X, y)',
          'net.mse(X, y)',
          "{n: (getattr(net, n), (getattr(net, n) - getattr(after, n)) / 0.05) for n in ('w_hidden', 'b_hidden', 'w_out')}"),
    Label('train_delta_lists', 'updates',
          'import copy\n'
          'net, row, expected = NeuralNet(3, 4, 2), [0.3, -1.2, 0.8], [1, 0]\n'
          'net.hidden, net.output = np.array(net.hidden), np.array(net.output)\n'
          'after = copy.deepcopy(net)\n'
          'after.train(row, expected, 0.5)',
          'net.error(row, expected)',
          "{n: (getattr(net, n), (getattr(net, n) - getattr(after, n)) / 0.5) for n in ('hidden', 'output')}"),
    Label('train_bias_forgotten_slope', 'updates',
          'import copy\n'
          'net, x, t = DigitNet(4, 5, 3, 0.1), rng.normal(size=(4, 6)), rng.uniform(size=(3, 6))\n'
          'after = copy.deepcopy(net)\n'
          'after.train(x, t)',
          'net.cost(x, t)',
          "{n: (getattr(net, n), (getattr(net, n) - getattr(after, n)) / 0.1) for n in ('wih', 'who')}",
          ('missing-local-derivative',), ('wih',), 'hidden_errors = self.who.T @ output_errors'),
    Label('train_momentum', 'updates',
          'import copy\n'
          'net, x, t = MomentumNet(3, 5, 2), rng.normal(size=(6, 3)), rng.normal(size=(6, 2))\n'
          'after = copy.deepcopy(net)\n'
          'after.step(x, t)',
          'net.loss(x, t)',
          "{n: (getattr(net, n), (getattr(net, n) - getattr(after, n)) / 0.01) for n in 'UV'}"),
    Label('train_weight_decay_twice', 'updates',
          'import copy\n'
          'net, X, Y = DecayNet(3, 2), rng.normal(size=(6, 3)), rng.normal(size=(6, 2))\n'
          'after = copy.deepcopy(net)\n'
          'after.update(X, Y)',
          'net.loss(X, Y)',
          "{'W': (net.W, (net.W - after.W) / net.eta)}",
          ('batch-mean-vs-sum', 'constant-factor'), ('W',), '+ self.lam * self.W) / n'),
    Label('train_perceptron_loop_indent', 'updates',
          'import copy\n'
          'net, X, Y = OneLayer(3, 2), rng.normal(size=(6, 3)), rng.uniform(size=(6, 2))\n'
          'after = copy.deepcopy(net)\n'
          'after.train_batch(X, Y, 0.1)',
          'net.loss(X, Y)',
          "{n: (getattr(net, n), (getattr(net, n) - getattr(after, n)) / 0.1) for n in 'Wb'}",
          ('missing-term', 'overwritten-not-accumulated'), ('b',), 'db += delta'),
    Label('train_minibatch_sum_right', 'updates',
          'import copy\n'
          'net, X, Y = SoftmaxRegression(4, 3), rng.normal(size=(6, 4)), np.eye(3)[rng.integers(0, 3, 6)]\n'
          'after = copy.deepcopy(net)\n'
          'after.gradient_step(X, Y, 0.1)',
          'net.nll(X, Y)',
          "{n: (getattr(net, n), (getattr(net, n) - getattr(after, n)) / 0.1) for n in ('theta', 'bias')}"),
    Label('train_stochastic_functions', 'updates',
          'import copy\n'
          'net, x, t = make_net(3, 4), rng.normal(size=3), 0.7\n'
          'after = copy.deepcopy(net)\n'
          'sgd_step(after, x, t)',
          'loss(net, x, t)',
          '{n: (net[n], (net[n] - after[n]) / 0.1) for n in net}',
          ('missing-local-derivative',), ('A', 'a'), 'back = e * net'),
    # whole numbers as inputs, parameters in the module
    Label("loss_chars_right", "loss",
          "inputs, targets, hprev = [1, 0, 3, 3], [0, 3, 3, 2], rng.normal(size=(5, 1))\n"
          "loss, *grads, h = lossFun(inputs, targets, hprev)",
          "lossFun(inputs, targets, hprev)[0]",
          "{n: (a, g) for n, a, g in zip(('Wxh', 'Whh', 'Why', 'bh', 'by'), (Wxh, Whh, Why, bh, by), grads)}"),
    Label("loss_chars_state", "loss",
          "inputs, targets, hprev = [1, 0, 3, 3], [0, 3, 3, 2], rng.normal(size=(5, 1))\n"
          "loss, *grads, h = loss_and_gradients(inputs, targets, hprev)",
          "loss_and_gradients(inputs, targets, hprev)[0]",
          "{n: (a, g) for n, a, g in zip(('Wxh', 'Whh', 'Why', 'bh', 'by'), (Wxh, Whh, Why, bh, by), grads)}",
          ("wrong-evaluation-point",), ("Whh",), "dWhh += np.dot(draw, hs[t].T)"),
    Label("net_skip_gram", "class",
          "net, center, context = SkipGram(7, 4), np.array([1, 0, 3, 3]), np.array([2, 6, 3, 5])\n"
          "net.forward(center)\n"
          "net.backward(context)",
          "net.loss(center, context)",
          "{'W_in': (net.W_in, net.dW_in), 'W_out': (net.W_out, net.dW_out)}",
          ("overwritten-not-accumulated",), ("W_in",), "self.dW_in[self.center] += dh"),
    # functions and their derivatives
    Label('prime_sigmoid_right', 'derivative',
          'x = 2 * rng.normal(size=9)\n'
          'slope = sigmoid_prime(x)',
          'np.sum(sigmoid(x))',
          "{'x': (x, slope)}"),
    Label('prime_sigmoid_output', 'derivative',
          'x = 2 * rng.normal(size=9)\n'
          'slope = nonlin(nonlin(x), deriv=True)',
          'np.sum(nonlin(x))',
          "{'x': (x, slope)}"),
    Label('prime_tanh', 'derivative',
          'x = 2 * rng.normal(size=9)\n'
          'slope = tanh_derivative(x)',
          'np.sum(tanh(x))',
          "{'x': (x, slope)}",
          ('wrong-local-derivative', 'wrong-evaluation-point'), ('x',), 'return 1 - tanh(x**2)'),
    Label('prime_relu_flag', 'derivative',
          'x = 2 * rng.normal(size=9)\n'
          'slope = relu(x, derivative=True)',
          'np.sum(relu(x))',
          "{'x': (x, slope)}"),
    Label('prime_softsign', 'derivative',
          'x = 2 * rng.normal(size=9)\n'
          'slope = softsign_grad(x)',
          'np.sum(softsign(x))',
          "{'x': (x, slope)}",
          ('wrong-local-derivative', 'missing-local-derivative'), ('x',), 'return 1 / (1 + np.abs(x))'),
    Label('prime_many', 'derivative',
          'x = 2 * rng.normal(size=9)\n'
          'slope = d_elu(x) + d_gaussian(x) + d_arctan(x)',
          'np.sum(elu(x) + gaussian(x) + arctan(x))',
          "{'x': (x, slope)}"),
    Label('prime_losses', 'derivative',
          'y_true, y_pred = rng.normal(size=(5, 2)), rng.normal(size=(5, 2))\n'
          'slope = mse_prime(y_true, y_pred)',
          'mse(y_true, y_pred)',
          "{'y_pred': (y_pred, slope)}"),
    Label('prime_losses_bce', 'derivative',
          'y_true, y_pred = rng.integers(0, 2, (5, 2)), rng.uniform(0.1, 0.9, (5, 2))\n'
          'slope = binary_cross_entropy_prime(y_true, y_pred)',
          'binary_cross_entropy(y_true, y_pred)',
          "{'y_pred': (y_pred, slope)}",
          ('missing-local-derivative', 'wrong-local-derivative'), ('y_pred',), 'return y_pred - y_true'),
    # intermediates passed by hand
    Label('hand_forward_backward', 'by hand',
          'X, W1, b1, W2, b2 = rng.normal(size=(6, 3)), rng.normal(size=(3, 5)), rng.normal(size=5), rng.normal(size=(5, 4)), rng.normal(size=4)\n'
          'y = np.eye(4)[rng.integers(0, 4, 6)]\n'
          'z1, a1, z2, yhat = forward(X, W1, b1, W2, b2)\n'
          'grads = backward(X, y, a1, yhat, W2)',
          'cross_entropy(forward(X, W1, b1, W2, b2)[3], y)',
          "{n: (a, g) for n, a, g in zip(('W1', 'b1', 'W2', 'b2'), (W1, b1, W2, b2), grads)}"),
    Label('hand_loss_apart', 'by hand',
          'X, W1, b1, W2, b2 = rng.normal(size=(6, 3)), rng.normal(size=(3, 5)), rng.normal(size=5), rng.normal(size=(5, 4)), rng.normal(size=4)\n'
          'y = np.eye(4)[rng.integers(0, 4, 6)]\n'
          'p, cache = forward(X, W1, b1, W2, b2)\n'
          'grads = backward(y, cache)',
          'cross_entropy(forward(X, W1, b1, W2, b2)[0], y)',
          "{n: (a, grads['d' + n]) for n, a in zip(('W1', 'b1', 'W2', 'b2'), (W1, b1, W2, b2))}",
          ('batch-mean-vs-sum',), ('W1', 'b1', 'W2', 'b2'), 'dz2 = 1.5 * (p - y)'),
    Label('hand_layer_norms', 'by hand',
          'x = rng.normal(size=(6, 4))\n'
          'out, mean, std = normalise(x)\n'
          'dout = rng.normal(size=(6, 4))\n'
          'dx = normalise_backward(dout, x, mean, std)',
          'np.sum(normalise(x)[0] * dout)',
          "{'x': (x, dx)}",
          ('batch-mean-vs-sum', 'missing-local-derivative', 'constant-factor'), ('x',), 'return (dy - dy.sum(axis=0)'),
    Label('hand_gates', 'by hand',
          'x, Wg, Wv = rng.normal(size=(6, 3)), rng.normal(size=(3, 4)), rng.normal(size=(3, 4))\n'
          'out, g, s, v = gate_forward(x, Wg, Wv)\n'
          'dout = rng.normal(size=(6, 4))\n'
          'grads = gate_backward(dout, x, Wg, Wv, g, s, v)',
          'np.sum(gate_forward(x, Wg, Wv)[0] * dout)',
          "{n: (a, d) for n, a, d in zip(('x', 'Wg', 'Wv'), (x, Wg, Wv), grads)}"),
    # the five notes
    Label('notes_shallow_svd', 'class',
          'net, x, y = ShallowNet(3, 5, 2), rng.normal(size=(6, 3)), rng.normal(size=(6, 2))\n'
          'dx = net.backward(y, net.forward(x))\n'
          'first, _, last = net.layers',
          'net.loss(x, y)',
          "{'x': (x, dx), 'weights1': (first.weights, first.d_weights), 'bias1': (first.bias, first.d_bias), 'weights2': (last.weights, last.d_weights), 'bias2': (last.bias, last.d_bias)}",
          ('wrong-local-derivative', 'missing-local-derivative', 'broadcast-not-summed'), ('x', 'weights1', 'bias1', 'bias2'), '_, s, _ = np.linalg.svd'),
    Label('notes_outer_product', 'updates',
          'import copy\n'
          'net, x, label = OneLayer(), rng.normal(size=7), rng.uniform(size=3)\n'
          'after = copy.deepcopy(net)\n'
          'after.train(x, label)',
          'net.sum_squared_error(x, label)',
          "{n: (getattr(net, n), (getattr(net, n) - getattr(after, n)) / 0.1) for n in ('weights', 'biases')}",
          ('missing-local-derivative',), ('weights', 'biases'), 'error = self.out(vect_in) - label'),
    Label('notes_vector_derivatives', 'cache',
          'x, W, v = rng.normal(size=(5, 2)), rng.normal(size=(2, 3)), rng.normal(size=3)\n'
          'prob, cache = forward(x, W, v)\n'
          'dprob = rng.normal(size=5)\n'
          'grads = backward(dprob, cache)',
          'np.sum(forward(x, W, v)[0] * dprob)',
          "{n: (a, g) for n, a, g in zip('xWv', (x, W, v), grads)}",
          ('wrong-local-derivative', 'wrong-evaluation-point'), ('x', 'W', 'v'), 'dout = dprob * sigmoid(out) * sigmoid(1 - out)'),
    Label('notes_modules', 'class',
          'net, x = TwoLayers(3, 5, 2), rng.normal(size=(6, 3))\n'
          'out = net.forward(x)\n'
          'dout = rng.normal(size=(6, 2))\n'
          'dx = net.backward(dout)\n'
          'first, _, last = net.modules',
          'np.sum(net.forward(x) * dout)',
          "{'x': (x, dx), 'W1': (first.W, first.dW), 'b1': (first.b, first.db), 'W2': (last.W, last.dW), 'b2': (last.b, last.db)}",
          ('wrong-evaluation-point',), ('x', 'W1', 'b1'), 'gradwrtinput = gradwrtoutput * (1 - self.last_input**2)'),
    Label('notes_lin_grad', 'by hand',
          'x, w, b = value(rng.normal(size=(4, 4))), value(rng.normal(size=(4, 4))), value(rng.normal(size=4))\n'
          'y = lin(x, w, b)\n'
          'y.g = rng.normal(size=(4, 4))\n'
          'lin_grad(x, w, b, y)',
          'np.sum(lin(x, w, b) * y.g)',
          "{'x': (x, x.g), 'w': (w, w.g), 'b': (b, b.g)}",
          ('elementwise-instead-of-matmul',), ('x',), 'x.g = y.g * w.T'),
    # scripts without functions: ``call`` names the first line of the update, up to which the script is run once;
    # ``loss`` is computed by the lines between the two markers, again and again
    Label('script_xor_loop', "script", '    syn1 += l1', ('    l1 = 1', '    l2_delta =', '0.5 * np.sum((y - l2) ** 2)'),
          "{'syn0': (syn0, -X.T.dot(l1_delta)), 'syn1': (syn1, -l1.T.dot(l2_delta))}"),
    Label('script_line_fit', "script", '    w -= learning_rate', ('    prediction =', '    dw =', 'loss'),
          "{'w': (w, dw), 'b': (b, db)}",
          ('constant-factor',), ('b',), 'db = np.mean(prediction - y)'),
    Label('script_relu_regression', "script", '    w1 -= learning_rate', ('    h = x.dot', '    grad_y_pred =', 'loss'),
          "{'w1': (w1, grad_w1), 'w2': (w2, grad_w2)}"),
    Label('script_softmax_spiral', "script", '    W += -step_size', ('    hidden_layer =', '    dscores =', 'loss'),
          "{'W': (W, dW), 'b': (b, db), 'W2': (W2, dW2), 'b2': (b2, db2)}",
          ('batch-mean-vs-sum',), ('W', 'b', 'W2', 'b2'), 'dscores[range(num_examples), y] -= 1'),
    Label('script_logistic_columns', "script", '    W -= 0.5', ('    Z = W @ X', '    dZ =', 'J'),
          "{'W': (W, dW), 'b': (b, np.reshape(db, (1, 1)))}"),
    Label('script_rnn_chars', "script", 'for param, dparam', ('xs, hs, ps =', 'dWxh, dWhh, dWhy =', 'loss'),
          "{'Wxh': (Wxh, dWxh), 'Whh': (Whh, dWhh), 'Why': (Why, dWhy), 'bh': (bh, dbh), 'by': (by, dby)}",
          ('wrong-evaluation-point',), ('Whh',), 'dWhh += dhraw @ hs[t].T'),
    # torch and JAX: proved by their own derivatives in the tests marked peers
    Label('torch_makemore_right', 'torch',
          'emb = C',
          'loss',
          "{n: (n, 'd' + n) for n in ('C', 'W1', 'b1', 'W2', 'b2')}"),
    Label('torch_makemore_logits', 'torch',
          'pre = x',
          'loss',
          "{n: (n, 'd' + n) for n in ('w_in', 'w_out')}",
          ('batch-mean-vs-sum',), ('w_in', 'w_out'), 'dlogits[torch.arange(batch), target] -= 1'),
    Label('torch_function_linear', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'input, weight, bias = rand(5, 3), rand(4, 3), rand(4)',
          'LinearFunction.apply(input, weight, bias)',
          'torch.autograd.gradcheck'),
    Label('torch_function_rmsnorm', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, gain = rand(5, 4), rand(4)',
          'RMSNorm.apply(x, gain)',
          'torch.autograd.gradcheck',
          ('missing-local-derivative', 'batch-mean-vs-sum', 'constant-factor', 'wrong-local-derivative', 'wrong-axis'), ('x',), 'dx = rstd * (dxhat - xhat'),
    Label('torch_function_bias_gelu', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, bias = rand(5, 4), rand(4)',
          'BiasGelu.apply(x, bias)',
          'torch.autograd.gradcheck',
          ('missing-local-derivative', 'wrong-local-derivative'), ('x', 'bias'), 'dz = dy * (cdf + pdf)'),
    Label('torch_function_cross_entropy', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'logits, labels = rand(6, 4), torch.tensor([0, 3, -1, 2, 1, -1])',
          'CrossEntropyFunction.apply(logits, labels, -1)',
          'torch.autograd.gradcheck',
          ('constant-factor', 'batch-mean-vs-sum'), ('logits',), '/ len(labels), None, None'),
    Label('torch_function_rotary', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'q, cos, sin = rand(5, 6), torch.randn(5, 6, dtype=torch.float64), torch.randn(5, 6, dtype=torch.float64)',
          'Rotary.apply(q, cos, sin)',
          'torch.autograd.gradcheck',
          ('transposed', 'wrong-sign'), ('q',), 'return dq * cos + rotate_half(dq) * sin, None, None'),
    Label('jax_custom_vjp_softplus', 'jax',
          'x = rng.normal(size=(5, 4))',
          'softplus(x)',
          'x'),
    Label('jax_custom_vjp_layer', 'jax',
          'x, w, b = rng.normal(size=(5, 3)), rng.normal(size=(3, 4)), rng.normal(size=4)',
          'layer(x, w, b)',
          'xwb',
          ('wrong-local-derivative', 'missing-local-derivative'), ('x', 'w', 'b'), 'dz = g * (1 - y)'),
    Label('jax_custom_jvp_log1pexp', 'jax',
          'x = rng.normal(size=(5, 4))',
          'log1pexp(x)',
          'x'),
    Label('torch_function_gelu_tanh', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, bias = rand(5, 4), rand(4)',
          'FusedBiasGelu.apply(x, bias)',
          'torch.autograd.gradcheck',
          ('wrong-local-derivative', 'constant-factor', 'missing-local-derivative'), ('x', 'bias'), 'inner = COEFFICIENT'),
    Label('torch_function_layernorm', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, weight, bias = rand(5, 4), rand(4), rand(4)',
          'LayerNorm.apply(x, weight, bias, 1e-5)',
          'torch.autograd.gradcheck',
          ('missing-term',), ('x',), 'dx = rstd * (dxhat'),
    Label('torch_function_rmsnorm_gain', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, weight = rand(5, 4), rand(4)',
          'RMSNorm.apply(x, weight, 1e-6)',
          'torch.autograd.gradcheck',
          ('wrong-evaluation-point', 'missing-local-derivative'), ('weight',), 'grad_weight = (grad_output * x)'),
    Label('torch_function_smoothing', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'logits, target = rand(6, 4), torch.tensor([0, 3, 1, 2, 1, 0])',
          'SmoothedCrossEntropy.apply(logits, target, 0.1)',
          'torch.autograd.gradcheck',
          ('missing-term', 'wrong-local-derivative'), ('logits',), 'grad[torch.arange(n), target] -= 1.0'),
    Label('torch_function_attention', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'q, k, v = rand(5, 3), rand(5, 3), rand(5, 3)',
          'CausalAttention.apply(q, k, v)',
          'torch.autograd.gradcheck',
          ('missing-local-derivative', 'constant-factor'), ('k',), 'dk = ds.transpose(-2, -1) @ q'),
    Label('torch_function_attention_diagonal', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'q, k, v = rand(2, 5, 3), rand(2, 5, 3), rand(2, 5, 4)',
          'Attention.apply(q, k, v)',
          'torch.autograd.gradcheck',
          ('missing-term',), ('q', 'k'), 'grad_scores = grad_att * att * (1 - att)'),
    Label('torch_function_attention_right', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'q, k, v = rand(2, 5, 3), rand(2, 5, 3), rand(2, 5, 4)',
          'Attention.apply(q, k, v)',
          'torch.autograd.gradcheck'),
    Label('torch_function_bias_mean', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, w, b = rand(5, 3), rand(3, 4), rand(4)',
          'Affine.apply(x, w, b)',
          'torch.autograd.gradcheck',
          ('batch-mean-vs-sum',), ('b',), 'g.mean(dim=0)'),
    Label('torch_function_swiglu', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'gate, up = rand(5, 4), rand(5, 4)',
          'SwiGLU.apply(gate, up)',
          'torch.autograd.gradcheck',
          ('missing-term', 'wrong-local-derivative'), ('gate',), 'grad_gate = grad * up * s'),
    Label('torch_function_square_linear', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'input, weight, bias = rand(5, 4), rand(4, 4), rand(4)',
          'MyLinear.apply(input, weight, bias)',
          'torch.autograd.gradcheck',
          ('transposed',), ('input',), 'grad_input = grad_output.mm(weight.t())'),
    Label('torch_function_embedding', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'weight, index = rand(4, 3), torch.tensor([0, 2, 2, 3, 0])',
          'Embed.apply(weight, index)',
          'torch.autograd.gradcheck',
          ('overwritten-not-accumulated',), ('weight',), 'grad_weight[index] += grad'),
    Label('torch_function_forgotten_bias', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, bias = rand(5, 4), rand(4)',
          'BiasRelu.apply(x, bias)',
          'torch.autograd.gradcheck',
          ('zero-gradient',), ('bias',), 'return g * (y > 0), None'),
    Label('torch_function_mse', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'prediction, target = rand(5, 3), torch.randn(5, 3, dtype=torch.float64)',
          'MSE.apply(prediction, target)',
          'torch.autograd.gradcheck',
          ('constant-factor', 'wrong-axis'), ('prediction',), 'difference.shape[0]'),
    Label('jax_cross_entropy_sum', 'jax',
          'logits, labels = rng.normal(size=(6, 4)), rng.dirichlet(np.ones(4), 6)',
          'cross_entropy(logits, labels)',
          ('logits', 'labels'),  # the labels' is zero, for it is not meant
          ('batch-mean-vs-sum',), ('logits', 'labels'), 'return g * (probs - labels)'),
    Label('jax_layernorm_axis', 'jax',
          'x, gamma, beta = rng.normal(size=(6, 4)), rng.normal(size=4), rng.normal(size=4)',
          'layer_norm(x, gamma, beta)',
          ('x', 'gamma', 'beta'),
          ('wrong-axis',), ('x',), 'dx = inv * (dh - dh.mean(0'),
    Label('jax_dense_transposed', 'jax',
          'x, w = rng.normal(size=(5, 4)), rng.normal(size=(4, 4))',
          'dense(x, w)',
          'xw',
          ('transposed',), ('x',), 'return g @ w, x.T @ g'),
    Label('jax_gelu_jvp', 'jax',
          'x = rng.normal(size=(5, 4))',
          'gelu(x)',
          'x',
          ('missing-local-derivative', 'wrong-local-derivative'), ('x',), '(norm.cdf(x) + norm.pdf(x)) * dx'),
    Label('jax_distance_sign', 'jax',
          'a, b = rng.normal(size=(5, 4)), rng.normal(size=(5, 4))',
          'distance(a, b)',
          'ab',
          ('wrong-sign',), ('b',), 'return grad, grad'),
    Label('torch_function_rmsnorm_sum', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, weight = rand(2, 4, 6), rand(6)',
          'RMSNormFn.apply(x, weight, 1e-6)',
          'torch.autograd.gradcheck',
          ('batch-mean-vs-sum', 'constant-factor', 'wrong-local-derivative'), ('x',), 'dx = inv * (dxhat'),
    Label('torch_function_ignored_rows', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'logits, target = rand(7, 4), torch.tensor([0, 3, -100, 2, 1, -100, 1])',
          'CrossEntropy.apply(logits, target, -100)',
          'torch.autograd.gradcheck',
          ('missing-local-derivative', 'missing-mask'), ('logits',), 'grad = grad / valid.sum()'),
    Label('torch_function_causal_mask', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'q, k, v = rand(2, 4, 3), rand(2, 4, 3), rand(2, 4, 3)',
          'CausalSelfAttention.apply(q, k, v)',
          'torch.autograd.gradcheck',
          ('missing-term', 'missing-local-derivative', 'wrong-local-derivative'), ('q', 'k'), 'grad_scores = att * (grad_att -'),
    Label('torch_function_embedding_assigned', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'indices, table = torch.tensor([[0, 2, 2], [3, 0, 1]]), rand(5, 3)',
          'EmbeddingFn.apply(indices, table)',
          'torch.autograd.gradcheck',
          ('overwritten-not-accumulated',), ('table',), 'grad_table[indices] = grad_output'),
    Label('torch_function_conv_unfold', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, w, b = rand(3, 2, 5, 4), rand(4, 2, 3, 2), rand(4)',
          'Conv2dUnfold.apply(x, w, b)',
          'torch.autograd.gradcheck',
          ('batch-mean-vs-sum',), ('w',), 'dw = (g @ cols.transpose(1, 2)).mean(dim=0)'),
    Label('torch_function_huber', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'pred, target = rand(5, 4), rand(5, 4)',
          'Huber.apply(pred, target, 0.5)',
          'torch.autograd.gradcheck',
          ('missing-local-derivative', 'constant-factor'), ('pred', 'target'), 'grad = torch.where('),
    Label('torch_function_needs_input_grad', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'input, weight, bias = rand(6, 4), rand(3, 4), rand(3)',
          'MyLinear.apply(input, weight, bias)',
          'torch.autograd.gradcheck',
          ('batch-mean-vs-sum',), ('weight',), 'grad_weight = grad_output.t().mm(input)'),
    Label('jax_softmax_size', 'jax',
          'logits, labels = rng.normal(size=(6, 4)), rng.dirichlet(np.ones(4), 6)',
          'softmax_cross_entropy(logits, labels)',
          ('logits', 'labels'),  # the labels' is zero, for it is not meant
          ('constant-factor', 'batch-mean-vs-sum'), ('logits', 'labels'), 'return g * (p - labels) / p.size, None'),
    Label('torch_function_fused_linear', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, weight, bias = rand(6, 4), rand(3, 4), rand(3)',
          "FusedLinear.apply(x, weight, bias, 'tanh')",
          'torch.autograd.gradcheck',
          ('missing-local-derivative',), ('bias',), 'gb = grad_out.sum(0)'),
    Label('torch_function_layernorm_module', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, weight, bias = rand(4, 3, 8), rand(8), rand(8)',
          '_LayerNorm.apply(x, weight, bias, 1e-5)',
          'torch.autograd.gradcheck',
          ('missing-term',), ('x',), 'dx = (dxhat - xhat * c1) * rstd'),
    Label('torch_function_gelu_erf', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x = rand(5, 4)',
          'GELU.apply(x)',
          'torch.autograd.gradcheck',
          ('wrong-local-derivative', 'constant-factor'), ('x',), 'pdf = torch.exp('),
    Label('torch_function_cumsum', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, weight = rand(3, 6), rand(6)',
          'DiscountedCumsum.apply(x, weight)',
          'torch.autograd.gradcheck',
          ('transposed', 'wrong-axis', 'wrong-local-derivative'), ('x', 'weight'), 'g = torch.cumsum(grad, dim=1)'),
    Label('torch_function_token_shift', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, mix = rand(2, 6, 4), rand(4)',
          'TokenShift.apply(x, mix)',
          'torch.autograd.gradcheck',
          ('transposed', 'wrong-local-derivative', 'wrong-axis'), ('x',), 'gx = grad * mix'),
    Label('torch_function_film', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, gamma, beta = rand(2, 3, 4, 4), rand(2, 3), rand(2, 3)',
          'FiLM.apply(x, gamma, beta)',
          'torch.autograd.gradcheck',
          ('zero-gradient',), ('beta',), 'return grad_x, grad_gamma, None'),
    Label('torch_function_logsumexp_pool', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x, mask = rand(2, 4, 3), torch.tensor([[True, True, False, True], [True, True, True, False]])',
          'LogSumExpPool.apply(x, mask, 0.5)',
          'torch.autograd.gradcheck'),
    Label('torch_function_topk_mean', 'torch.autograd.Function',
          'torch.manual_seed(0)\n'
          'rand = lambda *s: torch.randn(*s, dtype=torch.float64, requires_grad=True)\n'
          'x = rand(4, 7)',
          'TopKMean.apply(x, 3)',
          'torch.autograd.gradcheck'),
    Label('jax_attention', 'jax',
          'q, k, v = rng.normal(size=(2, 4, 3)), rng.normal(size=(2, 5, 3)), rng.normal(size=(2, 5, 3))',
          'attention(q, k, v)',
          'qkv',
          ('missing-term', 'wrong-local-derivative'), ('q', 'k'), 'ds = p * (1 - p) * dp'),
    Label('jax_safe_norm_jvp', 'jax',
          'x = rng.normal(size=(5, 4))',
          'safe_norm(x)',
          'x',
          ('wrong-local-derivative', 'extra-term', 'missing-local-derivative'), ('x',), 'denom = jnp.where(n == 0'),
)  # fmt: skip

GIVEN = {
    'embedding_bag_share': 'forward, backward, dict(token_ids=token_ids)',
    'loss_chars_right': 'lossFun, None, (inputs, targets, hprev)',
    'loss_chars_state': 'loss_and_gradients, None, (inputs, targets, hprev)',
    'net_skip_gram': 'net, None, dict(center=center, context=context)',
    'affine_pair': 'affine_forward, affine_backward, dict(x=x, w=w, b=b)',
    'affine_images': 'fc_forward, fc_backward, dict(X=x, W=w, b=b)',
    'relu_cache_inplace': 'relu_forward, relu_backward, dict(x=x)',
    'leaky_cache': 'leaky_relu_forward, leaky_relu_backward, dict(z=z, alpha=0.3)',
    'dense_course': "linear_activation_forward, linear_activation_backward, dict(A_prev=A_prev, W=W, b=b, activation='sigmoid')",
    'deep_course_twice': 'forward_and_cost, backward, dict(X=X, W1=W1, b1=b1, W2=W2, b2=b2, Y=Y)',
    'deep_course_right': 'forward_propagation, backward_propagation, dict(X=X, parameters=parameters, Y=Y)',
    'batchnorm_staged': 'batchnorm_forward, batchnorm_backward, dict(x=x, gamma=gamma, beta=beta)',
    'batchnorm_no_mean_path': 'bn_forward, bn_backward, dict(x=x, gamma=gamma, beta=beta)',
    'batchnorm_frozen': 'batchnorm_forward, batchnorm_backward, dict(x=x, gamma=gamma, beta=beta)',
    'layernorm_cache': 'layernorm_forward, layernorm_backward, dict(x=x, gamma=gamma, beta=beta)',
    'layernorm_wrong_axis': 'ln_fwd, ln_bwd, dict(x=x, g=gamma, b=beta)',
    'dropout_scale_lost': 'dropout_forward, dropout_backward, dict(x=x)',
    'dropout_right': "dropout_forward, dropout_backward, dict(x=x, dropout_param={'p': 0.7, 'mode': 'train', 'seed': 3})",
    'softmax_jacobian_cache': 'softmax_forward, softmax_backward, dict(z=z)',
    'softmax_diagonal_only': 'softmax_forward, softmax_backward, dict(scores=z)',
    'softmax_wrong_axis_cache': 'attention_weights_forward, attention_weights_backward, dict(scores=z)',
    'rnn_step': 'rnn_step_forward, rnn_step_backward, dict(x=x, prev_h=h, Wx=U, Wh=V, b=b)',
    'rnn_whole_overwrites': 'rnn_forward, rnn_backward, dict(x=x, h0=h, Wx=U, Wh=V, b=b)',
    'rnn_whole_truncated': 'rnn_forward, rnn_backward, dict(x=x, h0=h, Wx=U, Wh=V, b=b)',
    'lstm_step_gates': 'lstm_step_forward, lstm_step_backward, dict(x=x, prev_h=h, prev_c=c, Wx=U, Wh=V, b=b)',
    'lstm_step_right': 'lstm_cell_forward, lstm_cell_backward, dict(xt=xt, a_prev=a_prev, c_prev=c_prev, parameters=parameters)',
    'conv_loops': "conv_forward_naive, conv_backward_naive, dict(x=x, w=w, b=b, conv_param={'stride': 2, 'pad': 1})",
    'conv_overlap_lost': 'conv_forward, conv_backward, dict(images=x, kernels=w, bias=b)',
    'maxpool_loops': 'max_pool_forward, max_pool_backward, dict(x=x, size=3, stride=2)',
    'avgpool_share': 'avg_pool_forward, avg_pool_backward, dict(x=x, size=2)',
    'embedding_cache': 'word_embedding_forward, word_embedding_backward, dict(x=tokens, W=W)',
    'embedding_repeats_lost': 'lookup_forward, lookup_backward, dict(tokens=tokens, table=W)',
    'layer_dense_self': 'layer, None, dict(x=x)',
    'layer_dense_updates_first': 'layer, None, dict(data=x)',
    'layer_dense_column': 'layer, None, dict(input=x)',
    'layer_dense_bias_mean': 'layer, None, dict(x=x)',
    'layer_grads_list': 'layer, None, dict(x=x)',
    'layer_grads_dict': 'layer, None, dict(x=x)',
    'layer_square_weights': 'layer, None, dict(h=x)',
    'layer_relu_class': 'layer, None, dict(x=x)',
    'layer_sigmoid_at_input': 'layer, None, dict(x=x)',
    'layer_sigmoid_right': 'layer, None, dict(x=x)',
    'layer_tanh_twice': 'layer, None, dict(z=x)',
    'layer_activation_strategy': 'layer, None, dict(input=x)',
    'layer_softmax_class': 'layer, None, dict(x=x)',
    'layer_softmax_loss': 'layer, None, dict(x=x, t=t)',
    'layer_softmax_loss_sum': 'layer, None, dict(logits=x, onehot=t)',
    'layer_mse_class': 'layer, None, dict(pred=x, target=t)',
    'layer_mse_sign': 'layer, None, dict(y_true=y_true, y_pred=y_pred)',
    'layer_bce_right': 'layer, None, dict(y_true=y_true, y_pred=y_pred)',
    'layer_batchnorm_class': 'layer, None, dict(x=x)',
    'layer_batchnorm_var_power': 'layer, None, dict(X=x)',
    'layer_dropout_class': 'layer, None, dict(inputs=x)',
    'layer_dropout_draws_again': 'layer, None, dict(a=x)',
    'layer_residual': 'layer, None, dict(x=x)',
    'layer_scale_shift': 'layer, None, dict(x=x)',
    'layer_prelu': 'layer, None, dict(x=x)',
    'layer_softplus_wrong': 'layer, None, dict(z=x)',
    'layer_gelu_right': 'layer, None, dict(x=x)',
    'layer_swish_product_rule': 'layer, None, dict(x=x)',
    'layer_elu_class': 'layer, None, dict(x=x)',
    'layer_flatten_reshape': 'layer, None, dict(input=x)',
    'layer_conv_class': 'layer, None, dict(x=x)',
    'layer_conv_unflipped': 'layer, None, dict(image=x)',
    'layer_maxpool_class': 'layer, None, dict(x=x)',
    'layer_pool_routes_index': 'layer, None, dict(x=x)',
    'layer_embedding_class': 'layer, None, dict(idx=x)',
    'layer_attention_scale': 'layer, None, dict(q=q, k=k, v=v)',
    'layer_attention_right': 'layer, None, dict(x=x)',
    'layer_gru_class': 'layer, None, dict(x=x, h=h)',
    'net_two_layer_self': 'net, None, dict(X=X, y=y, reg=0.05)',
    'net_nabla_lists': 'net, None, dict(x=x, y=y)',
    'net_nabla_off_by_one': 'net, None, dict(x=x, y=y)',
    'net_layers_container': 'net, None, dict(x=x)',
    'net_container_skips_activation': 'net, None, dict(x=x)',
    'loss_linear_regression': 'cost_and_gradient, None, dict(theta=theta, X=X, y=y)',
    'loss_linear_regression_half': 'loss_and_grad, None, dict(w=w, b=b, X=X, y=y)',
    'loss_ridge_bias': 'ridge, None, dict(theta=theta, X=X, y=y)',
    'loss_logistic_right': 'propagate, None, dict(w=w, b=b, X=X, Y=Y)',
    'loss_logistic_averaged': 'logistic, None, dict(w=w, b=b, X=X, y=y)',
    'loss_logistic_no_l2': 'log_reg, None, dict(params=(w, b), X=X, y=y)',
    'loss_svm_naive': 'svm_loss_naive, None, dict(W=W, X=X, y=y, reg=0.1)',
    'loss_svm_vectorised_count': 'svm_loss, None, dict(W=W, X=X, y=y)',
    'loss_softmax_naive_divide': 'softmax_loss_naive, None, dict(W=W, X=X, y=y, reg=0.1)',
    'loss_softmax_vectorised': 'softmax_loss_vectorized, None, dict(W=W, X=X, y=y, reg=0.1)',
    'loss_two_layer_dict': 'two_layer, None, dict(params=params, X=X, T=T)',
    'loss_deep_nested': 'value_and_grad, None, dict(layers=layers, x=x, target=target)',
    'loss_deep_list_l2': 'objective, None, dict(weights=weights, x=x, labels=labels)',
    'loss_huber': 'huber, None, dict(pred=pred, target=target)',
    'loss_kl_logsoftmax': 'kl_loss, None, dict(student_logits=x, teacher_probs=p)',
    'loss_matrix_factorisation': 'mf_loss, None, dict(U=U, V=V, R=R, mask=mask)',
    'loss_autoencoder_tied': 'autoencoder, None, dict(W=W, b=b, c=c, X=X)',
    'loss_word2vec': 'neg_sampling, None, dict(v_c=v, u_o=u, U_neg=U)',
    'train_xor_class': 'net, None, None',
    'train_updates_too_early': 'net, None, dict(x=x, t=t)',
    'train_right_sgd': 'net, None, dict(X=X, y=y)',
    'train_delta_lists': 'net, None, dict(row=row, expected=expected, l_rate=0.5)',
    'train_bias_forgotten_slope': 'net, None, dict(inputs=x, targets=t)',
    'train_momentum': 'net, None, dict(x=x, t=t)',
    'train_weight_decay_twice': 'net, None, dict(X=X, Y=Y)',
    'train_perceptron_loop_indent': 'net, None, dict(X=X, Y=Y, lr=0.1)',
    'train_minibatch_sum_right': 'net, None, dict(X=X, Y=Y, alpha=0.1)',
    'train_stochastic_functions': 'loss, sgd_step, dict(net=net, x=x, t=t)',
    'prime_sigmoid_right': 'sigmoid, sigmoid_prime, dict(x=x)',
    'prime_sigmoid_output': 'nonlin, None, dict(x=x)',
    'prime_tanh': 'tanh, tanh_derivative, dict(x=x)',
    'prime_relu_flag': 'relu, None, dict(x=x)',
    'prime_softsign': 'softsign, softsign_grad, dict(x=x)',
    'prime_many': 'elu, d_elu, dict(x=x)',
    'prime_losses': 'mse, mse_prime, dict(y_true=y_true, y_pred=y_pred)',
    'prime_losses_bce': 'binary_cross_entropy, binary_cross_entropy_prime, dict(y_true=y_true, y_pred=y_pred)',
    'hand_forward_backward': 'forward, backward, dict(X=X, W1=W1, b1=b1, W2=W2, b2=b2, y=y)',
    'hand_loss_apart': 'forward, backward, dict(X=X, W1=W1, b1=b1, W2=W2, b2=b2, y=y)',
    'hand_layer_norms': 'normalise, normalise_backward, dict(x=x)',
    'hand_gates': 'gate_forward, gate_backward, dict(x=x, Wg=Wg, Wv=Wv)',
    'notes_shallow_svd': 'net, None, dict(x=x, y=y)',
    'notes_outer_product': 'net, None, dict(vect_in=x, label=label)',
    'notes_vector_derivatives': 'forward, backward, dict(x=x, W=W, v=v)',
    'notes_modules': 'net, None, dict(x=x)',
    'notes_lin_grad': 'lin, lin_grad, dict(x=x, w=w, b=b)',
}
