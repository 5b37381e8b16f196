class Reshape:
    def __init__(self, input_shape, output_shape):
        self.input_shape = input_shape
        self.output_shape = output_shape

    def forward(self, input):
        return input.reshape((len(input), *self.output_shape))

    def backward(self, output_gradient):
        return output_gradient.reshape((len(output_gradient), *self.input_shape))
