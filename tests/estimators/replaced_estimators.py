"""A plugin of pytest's: handgrad's estimators in place of scikit-learn's, before its tests are imported."""

import sklearn.neural_network

import handgrad.sklearn

for name in handgrad.sklearn.__all__:
    setattr(sklearn.neural_network, name, getattr(handgrad.sklearn, name))
