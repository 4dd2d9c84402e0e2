"""Where the ndarray differs from NumPy on purpose, as far as the fuzzer of programs meets it, each with its reason."""

from __future__ import annotations

from oracle.programs import Intended

INTENDED: tuple[Intended, ...] = (
    Intended(
        r"\*\*|power",
        r"^gave a result, where NumPy raised ValueError: Integers to negative|^raised DataError: power.*NumPy gave",
        "an exponent array is not looked at: that would wait for the device",
        ["v0 = xp.array([2, 3], 'int8', **on)", "v1 = xp.array([1, -1], 'int8', **on)", "v2 = v0 ** v1"],
    ),
    Intended(
        r"positive|\+v|gcd|lcm",
        r"^gave a result, where NumPy raised \w*TypeError: ufunc '(positive|gcd|lcm)' did not",
        "bool counts as int8",
        ["v0 = xp.array([True], 'bool', **on)", "v1 = xp.positive(v0)"],
    ),
    Intended(
        r"median",
        r"^gave a result, where NumPy raised ValueError: cannot reshape array of size 0",
        "over no axes there is nothing to reduce, and nothing to refuse",
        ["v0 = xp.zeros((0, 3), 'int8', **on)", "v1 = xp.median(v0, axis=())"],
        numpy_until="2.5.0",
    ),
    Intended(
        r"clip",
        r"clip is not defined for complex",
        "complex numbers have no order that the Array API would clip by",
        ["v0 = xp.array([1j], 'complex64', **on)", "v1 = xp.clip(v0, 0, 1)"],
    ),
    Intended(
        r"putmask|select|where",
        r"^gave a result, where NumPy raised TypeError: (Cannot cast|invalid entry)",
        "masks and values of every dtype are taken, as where() takes them",
        ["v0 = xp.array([1, 2], 'int8', **on)", "v1 = xp.select([v0], [v0])"],
    ),
    Intended(
        r".",
        r"^gave a result, where NumPy raised OverflowError: Python int too large to convert to C long",
        "bools and floats are compared with Python integers of any size",
        ["v0 = xp.array([True], 'bool', **on)", "v1 = v0 < 2**64"],
    ),
    Intended(
        r"where|select",
        r"^raised OverflowError: (where|select).*where NumPy gave",
        "a Python integer that the dtype cannot hold is refused, where NumPy's where() wraps it around until 2.5",
        ["v0 = xp.array([True], 'bool', **on)", "v1 = xp.where(v0, np.uint8(200), 2**32)"],
        numpy_until="2.5.0",
    ),
    Intended(
        r"\.at\(",
        r"^raised OverflowError: .*where NumPy gave",
        "a Python number that the dtype cannot hold is refused, as by the ufunc without at()",
        ["v0 = xp.array([1, 2], 'uint8', **on)", "xp.add.at(v0, [0, 0], -2)"],
    ),
    Intended(
        r"put",
        r"^gave a result, where NumPy raised TypeError: Cannot cast array data from dtype\('uint64'\)",
        "uint64 positions are checked by their values",
        ["v0 = xp.array([1, 2], 'int8', **on)", "xp.put(v0, xp.array([1], 'uint64', **on), 5)"],
    ),
    Intended(
        r"putmask|copyto",
        r"putmask: mask and data must be the same size|broadcast",
        "masks broadcast with what they mask",
        ["v0 = xp.array([[1], [2]], 'int8', **on)", "v1 = xp.array([True], 'bool', **on)", "xp.putmask(v0, v1, v0)"],
    ),
    Intended(
        r"\[",
        r"^gave a result, where NumPy raised IndexError: index -?\d+ is out of bounds",
        "positions on a GPU are not looked at, so that nothing waits",
        ["v0 = xp.zeros((3, 0), 'int8', **on)", "v1 = v0[xp.array([7], 'int64', **on)]"],
        device="cuda",
    ),
    Intended(
        r"take|compress",
        r"^raised IndexError: .*where NumPy gave a result",
        "positions on an axis without elements are out of bounds",
        ["v0 = xp.zeros((3, 0, 0), 'int8', **on)", "v1 = xp.take(v0, [0], axis=1, mode='clip')"],
    ),
    Intended(
        r".",
        r"^raised OverflowError: nd.array\(\): Python integer past 64 bits .*where NumPy gave",
        "there are no arrays of Python objects",
        ["v0 = xp.array([1.0], 'float64', **on)", "v1 = xp.searchsorted(v0, -2**63 - 1)"],
    ),
    Intended(
        r"xp.arg\w+\(.*out=",
        r"^gave a result, where NumPy raised TypeError: Cannot cast .* to dtype\('int64'\)",
        "positions are written to outputs of every dtype that holds integers",
        ["v0 = xp.array([1.0], 'float64', **on)", "v1 = xp.array(1.0, 'float64', **on)", "xp.argmin(v0, out=v1)"],
    ),
    Intended(
        r"copyto|\.at\(",
        r"^raised \w+: .*read-only.*where NumPy gave",
        "what is read-only is refused before the mask is looked at",
        [
            "v0 = xp.broadcast_to(xp.array(False, 'bool', **on), (1,))",
            "xp.copyto(v0, v0, where=xp.array(False, 'bool', **on))",
        ],
    ),
    Intended(
        r"\b(std|var)\(",
        r"instead of np\.float\d+\(inf\)",
        "the mean of equal numbers is that number, where NumPy's rounds and the square of what is left overflows",
        ["v0 = xp.zeros(3, 'complex64', **on)", "v0.fill(10**30)", "v1 = xp.var(v0)"],
    ),
    Intended(
        r"\b(std|var)\(",
        r"np\.float\d+\(inf\) instead of np\.float\d+\(nan\)",
        "the mean of large numbers is finite where NumPy's sum of them overflows and leaves it with inf - inf",
        ["v0 = xp.zeros(5, 'complex64', **on)", "v0.fill(8.5e37)", "v0[0] = 8.5e37 + 5e19j", "v1 = xp.std(v0)"],
    ),
    Intended(
        r"\bmean\(.*dtype=",
        r"instead of np\.float\d+\(inf\)",
        "the mean is rounded to a narrower dtype at its end, where NumPy's sum in that dtype overflows",
        ["v0 = xp.array([2e38, 3e38], 'float64', **on)", "v1 = xp.mean(v0, dtype='float32')"],
    ),
    Intended(
        r"out=",
        r"^raised ValueError: \w+\(\): out has shape .*where NumPy gave",
        "an output has the shape of the result",
        [
            "v0 = xp.array([[1], [2]], 'int8', **on)",
            "v1 = xp.array([[1.0], [2.0]], 'float64', **on)",
            "xp.median(v0, axis=0, keepdims=True, out=v1)",
        ],
    ),
    Intended(
        r"\] = ",
        r"^gave a result, where NumPy raised TypeError: NumPy boolean array indexing assignment requires",
        "values broadcast to the elements that a mask selects",
        ["v0 = xp.array([[1]], 'int8', **on)", "v0[xp.array([[True]], 'bool', **on)] = v0"],
    ),
    Intended(
        r"\] = ",
        r"^gave a result, where NumPy raised \w+: (setting an array element with a sequence|only 0-dimensional arrays)",
        "an array of one element is an element",
        ["v0 = xp.array([1, 2], 'int8', **on)", "v1 = xp.array([3], 'int8', **on)", "v0[0] = v1"],
    ),
    Intended(
        r"\] \S*= .*np\.u?int\d+\(",
        r"^gave a result, where NumPy raised OverflowError: Python integer .* out of bounds",
        "a number of NumPy's is cast as an array of its dtype is; NumPy takes it for a Python integer",
        ["v0 = xp.array([1, 2], 'int8', **on)", "v0[:] = np.uint8(200)"],
    ),
    Intended(
        r"\] = ",
        r"^raised DataError: .* does not broadcast to \(.*where NumPy gave a result",
        "what is assigned broadcasts to the elements selected, where there are none, too",
        [
            "v0 = xp.zeros((2, 0), 'int8', **on)",
            "v0[xp.array([0], 'int64', **on), xp.zeros((0,), 'int64', **on)] = xp.zeros((3, 0), 'int8', **on)",
        ],
    ),
    Intended(
        r"(std|var|sum|prod|mean)\(",
        r"np\.float16\([^()]*\) instead of np\.float16\((inf|nan)\)",
        "variances, sums and products of float16 are computed in float32, which holds what comes in between",
        ["v0 = xp.array([2.5, 4, 10000, 0.5], 'float16', **on)", "v1 = xp.cumprod(v0)"],
    ),
    Intended(
        r"\.at\(.*, -?[\d*]+\)$",
        r"np\.uint64\(\d+\) instead of np\.uint64",
        "a Python integer has the dtype of the array; NumPy takes it to be int64, and adds in float64",
        ["v0 = xp.array([2**63 - 1], 'uint64', **on)", "xp.add.at(v0, [0, 0, 0], 2)"],
    ),
    Intended(
        r"\] \S+= ",
        r"^raised \w+: .* does not fit the output's shape \(\), where NumPy gave a result",
        "an element is an array of no axes, which takes nothing larger in place; NumPy makes a number of it first",
        [
            "v0 = xp.array([False], 'bool', **on)",
            "v1 = xp.array([True], 'bool', **on)",
            "v0[xp.array(-1, 'int64', **on)] ^= v1",
        ],
    ),
    Intended(
        r"isin",
        r"np\.False_ instead of np\.True_ .* of .*u?int64",
        "integers are among floats, or integers of the other sign, where they are equal to one; NumPy rounds first",
        [
            "v0 = xp.array([2**62 + 28, 2**62 + 23], 'int64', **on)",
            "v1 = xp.isin(v0, xp.zeros((38,), 'float16', **on))",
        ],
    ),
    Intended(
        r"(sum|prod|max|min)\(.*out=",
        r"np\.u?int\d+\(-?\d+\) instead of np\.u?int\d+\(-?\d+\) .*of .*uint64",
        "a reduction is in the dtype of what is read; NumPy meets an output of signed integers in float64",
        [
            "v0 = xp.array([[2**63 - 1, 4]], 'uint64', **on)",
            "v1 = xp.array([0, 0], 'int64', **on)",
            "xp.sum(v0, axis=0, out=v1)",
        ],
    ),
    Intended(
        r"(std|var)\(",
        r"np\.float\d+\(0\.0\) instead of np\.float\d+\(\d",
        "the variance of equal numbers is zero, to whatever their mean is rounded",
        ["v0 = xp.array([1e30, 1e30, 1e30], 'float64', **on)", "v1 = xp.var(v0)"],
    ),
    Intended(
        r"copyto",
        r"^raised TypeError: copyto\(\): where is .*where NumPy gave",
        "a mask of no dimensions is an array, which must be bool; NumPy has a number here, which it takes for true",
        ["v0 = xp.array([1, 2], 'int8', **on)", "v1 = xp.array(0, 'int8', **on)", "xp.copyto(v0, 7, where=~v1)"],
    ),
    Intended(
        r"@|inner|dot",
        r"nan\S* instead of np\.\w+\([-0.]+j?\)",
        "infinity times zero is NaN in every product; NumPy's BLAS leaves zeros out",
        [
            "v0 = xp.array([[-0.5], [inf]], 'float32', **on)",
            "v1 = xp.array([False], 'bool', **on)",
            "v2 = xp.inner(v0, v1)",
        ],
    ),
    Intended(
        r"\*\* ?2\b",
        r"dtype int64 instead of int8",
        "bool and a Python integer are an int64, as in every other power",
        ["v0 = xp.array([True], 'bool', **on)", "v1 = v0 ** 2"],
    ),
    Intended(
        r"\*\*|power",
        r"inf\)* instead of .*nan",
        "minus infinity to the power of one half is infinity, as the Array API has it; NumPy takes the square root",
        ["v0 = xp.array([-inf], 'float64', **on)", "v1 = v0 ** 0.5"],
    ),
    Intended(
        r"\] \S*= ",
        r"cannot cast the result from .* of the output.*where NumPy gave a result",
        "an element is an array, whose dtype stays; NumPy puts a new number in its place",
        ["v0 = xp.array([1, 2], 'int8', **on)", "v0[0] *= 1j"],
    ),
    Intended(
        r"out=",
        r"Use an output of that dtype, where NumPy gave|^raised TypeError: copyto.*same_kind.*, where NumPy gave",
        "a result that the output cannot hold is refused by reductions, too",
        [
            "v0 = xp.array([1, 2], 'int8', **on)",
            "v1 = xp.array(0, 'int8', **on)",
            "xp.mean(v0, out=v1)",
        ],
    ),
    Intended(
        r"cum(sum|prod)|cumulative_(sum|prod)",
        r"instead of np\.float16\(-?inf\)",
        "a scan of float16 is kept in float32, which comes back from beyond what float16 holds",
        [
            "v0 = xp.array([60000.0, 2.0, 0.5], 'float16', **on)",
            "v1 = xp.cumprod(v0)",
        ],
    ),
    Intended(
        r".",
        r"^gave a result, where NumPy raised \w*ValueError: .*read-only",
        "a diagonal can be written to",
        ["v0 = xp.array([[1, 2], [3, 4]], 'int8', **on)", "v1 = xp.diagonal(v0)", "v1[...] = 7"],
    ),
    Intended(
        r"(var|std)\(.*out=",
        r"elements differ.* of .*(float16|float32|complex64)",
        "distances are taken in the dtype of the output where it is wider, NumPy's in that of the elements",
        [
            "v0 = xp.array([0.1, 0.2, 0.4], 'float32', **on)",
            "v1 = xp.array(0.0, 'float64', **on)",
            "xp.var(v0, out=v1)",
        ],
    ),
    Intended(
        r"ptp.*out=",
        r"elements differ",
        "the largest is not narrowed to the output's dtype before the smallest is taken from it",
        [
            "v0 = xp.array([[200, 0], [5, 0], [100, 0]], 'int32', **on)",
            "v1 = xp.zeros(2, 'int8', **on)",
            "xp.ptp(v0, axis=0, out=v1)",
        ],
    ),
)
