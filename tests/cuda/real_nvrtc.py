"""Gives NVRTC the sources that fake_nvrtc.py kept: `python real_nvrtc.py FILE`.

Prints how many there were, or where the two compilers differ.
"""

import pickle
import sys

from dlbridge.nd import _native
from dlbridge.nd._kernels import nvrtc


def calls(path):
    with open(path, "rb") as file:
        while True:
            try:
                yield pickle.load(file)
            except EOFError:
                return


def main(path):
    try:
        nvrtc.compiler()
    except RuntimeError as error:
        print("none", str(error).splitlines()[0])
        return
    count = 0
    for source, name, options, name_expressions, headers, expected in calls(path):
        options = [option for option in options if not option.startswith("--include-path")]  # a toolkit's headers
        succeeded, log, *_ = _native.nvrtc_compile(source, name, options, name_expressions, headers, True)
        assert succeeded == expected, f"NVRTC {'takes' if succeeded else 'refuses'} {name}:\n{log}\n{source}"
        count += 1
    print("agrees", count)


if __name__ == "__main__":
    main(sys.argv[1])
