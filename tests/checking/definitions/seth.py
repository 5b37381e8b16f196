import numpy as np
from numpy import ndarray

class Operation(object):
    def __init__(self):
        pass
    def forward(self, input_: ndarray):
        self.input_ = input_
        self.output = self._output()
        return self.output
    def backward(self, output_grad: ndarray) -> ndarray:
        assert self.output.shape == output_grad.shape
        self.input_grad = self._input_grad(output_grad)
        assert self.input_.shape == self.input_grad.shape
        return self.input_grad
    def _output(self) -> ndarray:
        raise NotImplementedError()
    def _input_grad(self, output_grad: ndarray) -> ndarray:
        raise NotImplementedError()

class ParamOperation(Operation):
    def __init__(self, param: ndarray) -> ndarray:
        super().__init__()
        self.param = param
    def backward(self, output_grad: ndarray) -> ndarray:
        assert self.output.shape == output_grad.shape
        self.input_grad = self._input_grad(output_grad)
        self.param_grad = self._param_grad(output_grad)
        assert self.param.shape == self.param_grad.shape
        return self.input_grad
    def _param_grad(self, output_grad: ndarray) -> ndarray:
        raise NotImplementedError()

class WeightMultiply(ParamOperation):
    def __init__(self, W: ndarray):
        super().__init__(W)
    def _output(self) -> ndarray:
        return np.dot(self.input_, self.param)
    def _input_grad(self, output_grad: ndarray) -> ndarray:
        return np.dot(output_grad, np.transpose(self.param, (1, 0)))
    def _param_grad(self, output_grad: ndarray) -> ndarray:
        return np.dot(np.transpose(self.input_, (1, 0)), output_grad)

class BiasAdd(ParamOperation):
    def __init__(self, B: ndarray):
        assert B.shape[0] == 1
        super().__init__(B)
    def _output(self) -> ndarray:
        return self.input_ + self.param
    def _input_grad(self, output_grad: ndarray) -> ndarray:
        return np.ones_like(self.input_) * output_grad
    def _param_grad(self, output_grad: ndarray) -> ndarray:
        param_grad = np.ones_like(self.param) * output_grad
        return np.sum(param_grad, axis=0).reshape(1, param_grad.shape[1])

class Sigmoid(Operation):
    def _output(self) -> ndarray:
        return 1.0 / (1.0 + np.exp(-1.0 * self.input_))
    def _input_grad(self, output_grad: ndarray) -> ndarray:
        return self.output * (1.0 - self.output) * output_grad

class Loss(object):
    def forward(self, prediction: ndarray, target: ndarray) -> float:
        assert prediction.shape == target.shape
        self.prediction = prediction
        self.target = target
        return self._output()
    def backward(self) -> ndarray:
        self.input_grad = self._input_grad()
        assert self.prediction.shape == self.input_grad.shape
        return self.input_grad
    def _output(self) -> float:
        raise NotImplementedError()
    def _input_grad(self) -> ndarray:
        raise NotImplementedError()

class MeanSquaredError(Loss):
    def _output(self) -> float:
        return np.sum(np.power(self.prediction - self.target, 2)) / self.prediction.shape[0]
    def _input_grad(self) -> ndarray:
        return 2.0 * (self.prediction - self.target) / self.prediction.shape[0]

#WRONG: self.output * (1.0 - self.output) * output_grad => (1.0 - self.output) * output_grad
#WRONG: 2.0 * (self.prediction - self.target) / self.prediction.shape[0] => 2.0 * (self.prediction - self.target)
