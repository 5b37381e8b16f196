import numpy as np
from scipy import optimize

def sigmoid(z):
    return 1.0 / (1.0 + np.exp(-z))

def sigmoidGradient(z):
    g = sigmoid(z)
    return g * (1 - g)

def nnCostFunction(nn_params, input_layer_size, hidden_layer_size, num_labels, X, y, lambda_=0.0):
    Theta1 = np.reshape(nn_params[:hidden_layer_size * (input_layer_size + 1)],
                        (hidden_layer_size, (input_layer_size + 1)))
    Theta2 = np.reshape(nn_params[(hidden_layer_size * (input_layer_size + 1)):],
                        (num_labels, (hidden_layer_size + 1)))
    m = y.size
    a1 = np.concatenate([np.ones((m, 1)), X], axis=1)
    z2 = a1.dot(Theta1.T)
    a2 = np.concatenate([np.ones((m, 1)), sigmoid(z2)], axis=1)
    a3 = sigmoid(a2.dot(Theta2.T))
    Y = np.eye(num_labels)[y]
    J = -np.sum(Y * np.log(a3) + (1 - Y) * np.log(1 - a3)) / m
    J += lambda_ / (2 * m) * (np.sum(Theta1[:, 1:] ** 2) + np.sum(Theta2[:, 1:] ** 2))
    delta3 = a3 - Y
    delta2 = delta3.dot(Theta2)[:, 1:] * sigmoidGradient(z2)
    Theta1_grad = delta2.T.dot(a1) / m
    Theta2_grad = delta3.T.dot(a2) / m
    Theta1_grad[:, 1:] += lambda_ / m * Theta1[:, 1:]
    Theta2_grad[:, 1:] += lambda_ / m * Theta2[:, 1:]
    grad = np.concatenate([Theta1_grad.ravel(), Theta2_grad.ravel()])
    return J, grad

#WRONG:  * sigmoidGradient(z2) => 
#WRONG: sigmoidGradient(z2) => sigmoidGradient(sigmoid(z2))
