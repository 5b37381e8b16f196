import numpy as np

class CoucheDense:
    def __init__(self, taille_entree, taille_sortie):
        self.poids = np.random.randn(taille_entree, taille_sortie) * 0.1
        self.biais = np.zeros((1, taille_sortie))

    def propager(self, entree):
        self.entree = entree
        return entree @ self.poids + self.biais

    def retropropager(self, grad_sortie):
        self.grad_poids = self.entree.T @ grad_sortie
        self.grad_biais = grad_sortie.sum(axis=0, keepdims=True)
        return grad_sortie @ self.poids.T

class Sigmoide:
    def propager(self, entree):
        self.sortie = 1 / (1 + np.exp(-entree))
        return self.sortie

    def retropropager(self, grad_sortie):
        return grad_sortie * self.sortie * (1 - self.sortie)

#WRONG: self.sortie * (1 - self.sortie) => (1 - self.sortie)
#WRONG: sum(axis=0 => mean(axis=0
