import numpy as np

class Netz:
    def __init__(self, n_ein, n_versteckt, n_aus, lernrate=0.1):
        self.w_ev = np.random.normal(0, 0.5, (n_versteckt, n_ein))
        self.w_va = np.random.normal(0, 0.5, (n_aus, n_versteckt))
        self.lernrate = lernrate

    def sigmoid(self, x):
        return 1 / (1 + np.exp(-x))

    def vorwaerts(self, eingabe):
        e = np.array(eingabe, ndmin=2).T
        v = self.sigmoid(self.w_ev @ e)
        return self.sigmoid(self.w_va @ v)

    def trainieren(self, eingabe, ziel):
        e = np.array(eingabe, ndmin=2).T
        z = np.array(ziel, ndmin=2).T
        v = self.sigmoid(self.w_ev @ e)
        a = self.sigmoid(self.w_va @ v)
        fehler_aus = z - a
        fehler_versteckt = self.w_va.T @ (fehler_aus * a * (1 - a))
        self.w_va += self.lernrate * (fehler_aus * a * (1 - a)) @ v.T
        self.w_ev += self.lernrate * (fehler_versteckt * v * (1 - v)) @ e.T

#WRONG: self.w_va.T @ (fehler_aus * a * (1 - a)) => self.w_va.T @ fehler_aus
