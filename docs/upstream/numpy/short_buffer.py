"""np.asarray() makes an array that is longer than the buffer behind it. Exit status 0: as reported; 1: gone."""

import sys

import numpy as np


class Short:
    def __init__(self):
        self.__array_interface__ = {"shape": (1000,), "typestr": "<f4", "data": b"8 bytes!", "version": 3}


array = np.asarray(Short())
print(array.nbytes, "bytes of a buffer of 8")
if array.nbytes <= 8:
    sys.exit("gone: the array ends with its buffer")
print("as reported: the array reaches beyond its buffer")
