"""Arrays in files: NumPy reads and writes them, on the host."""

from __future__ import annotations

from dlbridge.nd import _native
from dlbridge.nd._arguments import as_array
from dlbridge.nd._creation import asnumpy
from dlbridge.nd._dtypes import resolve
from dlbridge.nd._host import numpys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from dlbridge.nd._arguments import ArrayLike, DeviceLike, DTypeLike

ndarray = _native.ndarray


def _placed(x: Any, device: DeviceLike) -> ndarray:
    """An array of NumPy's that nobody else has."""
    if not getattr(x.dtype, "isnative", True):  # of a pickle it may be an ndarray
        x = x.astype(x.dtype.newbyteorder("="))
    return _native.asarray(x, None, None, device=device)


class NpzFile:
    """What load() gives of a .npz file: names and their arrays, each read when it is asked for; a context manager."""

    def __init__(self, file: Any, device: DeviceLike) -> None:
        self._file, self._device = file, device
        self.files: list[str] = file.files

    def __getitem__(self, name: str) -> ndarray:
        return _placed(self._file[name], self._device)

    def __contains__(self, name: object) -> bool:
        return name in self.files

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)

    def close(self) -> None:
        self._file.close()

    def __enter__(self) -> NpzFile:
        return self

    def __exit__(self, *_exception: object) -> None:
        self.close()


def save(file: Any, arr: ArrayLike, allow_pickle: bool = True) -> None:
    """Writes an array to a .npy file: a path, to which .npy is added, or a file object. Waits for the device.

    allow_pickle has no effect: there are no objects among the elements.
    """
    numpys("numpy", "save").save(file, asnumpy(as_array(arr)), allow_pickle=False)


def savez(file: Any, *args: ArrayLike, **kwds: ArrayLike) -> None:
    """Writes arrays to an uncompressed .npz file, as arr_0, arr_1, … and under their names. Waits for the devices."""
    arrays = {name: asnumpy(as_array(x)) for name, x in kwds.items()}
    numpys("numpy", "savez").savez(file, *[asnumpy(as_array(x)) for x in args], **arrays)


def savez_compressed(file: Any, *args: ArrayLike, **kwds: ArrayLike) -> None:
    """savez() with the arrays compressed."""
    arrays = {name: asnumpy(as_array(x)) for name, x in kwds.items()}
    numpys("numpy", "savez_compressed").savez_compressed(file, *[asnumpy(as_array(x)) for x in args], **arrays)


def load(
    file: Any,
    mmap_mode: str | None = None,
    allow_pickle: bool = False,
    *,
    max_header_size: int = 10000,
    device: DeviceLike = None,
) -> ndarray | NpzFile:
    """The array of a .npy file, or an NpzFile; that of a pickle, as ndarray.dump() writes it, if that is allowed.

    allow_pickle: a pickle can run any code, so that it is refused unless you trust the file. mmap_mode: maps the file,
    as NumPy does; on the host the array shares that memory, and "r" gives a read-only one. max_header_size: refuses
    longer headers. device: where the array goes; without it, where new arrays go, but a mapped file stays on the host.
    ValueError for what is no such file.
    """
    numpy = numpys("numpy", "load")
    found = numpy.load(file, mmap_mode=mmap_mode, allow_pickle=allow_pickle, max_header_size=max_header_size)
    if hasattr(found, "files"):
        return NpzFile(found, device)
    if mmap_mode is not None:
        return _native.asarray(found, device="cpu" if device is None else device)
    return _placed(found, device)


def loadtxt(fname: Any, *, device: DeviceLike = None, **options: Any) -> ndarray:
    """numpy.loadtxt() with its options, on a device: an array of the numbers in a text file."""
    return _placed(numpys("numpy", "loadtxt").loadtxt(fname, **options), device)


def genfromtxt(fname: Any, *, device: DeviceLike = None, **options: Any) -> ndarray:
    """numpy.genfromtxt() with its options, on a device: as loadtxt(), with rules for what is missing."""
    return _placed(numpys("numpy", "genfromtxt").genfromtxt(fname, **options), device)


def savetxt(fname: Any, X: ArrayLike, **options: Any) -> None:
    """numpy.savetxt() with its options: writes a vector or a matrix as text. Waits for the device."""
    numpys("numpy", "savetxt").savetxt(fname, asnumpy(as_array(X)), **options)


def fromfile(file: Any, *, device: DeviceLike = None, **options: Any) -> ndarray:
    """numpy.fromfile() with its options (dtype, count, sep, offset), on a device: the raw numbers of a file."""
    return _placed(numpys("numpy", "fromfile").fromfile(file, **options), device)


def fromstring(
    string: str, dtype: DTypeLike = "float64", count: int = -1, *, sep: str = " ", device: DeviceLike = None
) -> ndarray:
    """The numbers in a text: all of them or `count`, parted by `sep` (a blank: any white space). Source: NumPy."""
    if not sep:
        raise ValueError("fromstring(): sep is empty, and raw bytes are not text. Use frombuffer()")
    return _placed(numpys("numpy", "fromstring").fromstring(string, str(resolve(dtype)), count, sep=sep), device)
