import numpy as np

def sigmoid(x):
    return 1 / (1 + np.exp(-x))

def softmax(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)

def naiveSoftmaxLossAndGradient(centerWordVec, outsideWordIdx, outsideVectors):
    y_hat = softmax(outsideVectors @ centerWordVec)
    loss = -np.log(y_hat[outsideWordIdx])
    d = y_hat.copy()
    d[outsideWordIdx] -= 1
    gradCenterVec = outsideVectors.T @ d
    gradOutsideVecs = np.outer(d, centerWordVec)
    return loss, gradCenterVec, gradOutsideVecs

def negSamplingLossAndGradient(centerWordVec, outsideWordIdx, negSampleWordIndices, outsideVectors):
    u = outsideVectors[outsideWordIdx]
    neg = outsideVectors[negSampleWordIndices]
    s = sigmoid(u @ centerWordVec)
    sn = sigmoid(-neg @ centerWordVec)
    loss = -np.log(s) - np.sum(np.log(sn))
    gradCenterVec = (s - 1) * u + (1 - sn) @ neg
    gradOutsideVecs = np.zeros_like(outsideVectors)
    gradOutsideVecs[outsideWordIdx] = (s - 1) * centerWordVec
    for k, w in zip(range(len(negSampleWordIndices)), negSampleWordIndices):
        gradOutsideVecs[w] += (1 - sn[k]) * centerWordVec
    return loss, gradCenterVec, gradOutsideVecs

#WRONG: gradOutsideVecs[w] += (1 - sn[k]) => gradOutsideVecs[w] = (1 - sn[k])
#WRONG: np.outer(d, centerWordVec) => np.outer(y_hat, centerWordVec)
