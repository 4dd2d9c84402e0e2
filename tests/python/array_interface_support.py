"""Objects with __array_interface__, for the tests of the dictionary and of the struct."""

import struct

from dlbridge import asdlpack

FLOATS = struct.pack("6f", *range(6))


class Dict:
    """An object whose __array_interface__ is the given dictionary."""

    def __init__(self, **interface):
        self.interface = interface

    @property
    def __array_interface__(self):
        return self.interface


def base(**changes):
    """A good dictionary over six floats, changed; a value of ... removes the key."""
    fields = {"shape": (6,), "typestr": "<f4", "data": bytearray(FLOATS), "version": 3} | changes
    return {key: value for key, value in fields.items() if value is not ...}


def read(**changes):
    return asdlpack(Dict(**base(**changes)), protocol="array_interface")


def floats(tensor):
    return memoryview(tensor).tolist()
