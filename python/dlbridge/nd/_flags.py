"""What `x.flags` is."""

from __future__ import annotations

_FLAG_NAMES = {"C": "c_contiguous", "F": "f_contiguous", "O": "owndata", "W": "writeable"}


class Flags:
    """How an array lies in memory, as NumPy's flags: attributes, and items by NumPy's names."""

    __slots__ = ("c_contiguous", "f_contiguous", "owndata", "writeable")

    c_contiguous: bool
    f_contiguous: bool
    owndata: bool
    writeable: bool

    def __init__(self, c_contiguous: bool, f_contiguous: bool, writeable: bool, owndata: bool) -> None:
        for name, value in zip(self.__slots__, (c_contiguous, f_contiguous, owndata, writeable), strict=True):
            object.__setattr__(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(
            f"flags.{name} = {value!r}: flags say what an array is, and do not change it. broadcast_to(x, x.shape) is "
            "a read-only view; asfortranarray(x), ascontiguousarray(x) and x.copy() give other layouts and own memory"
        )

    @property
    def contiguous(self) -> bool:
        return self.c_contiguous

    @property
    def fortran(self) -> bool:
        return self.f_contiguous and not self.c_contiguous

    @property
    def fnc(self) -> bool:
        return self.fortran

    @property
    def forc(self) -> bool:
        return self.f_contiguous or self.c_contiguous

    def __getitem__(self, name: str) -> bool:
        attribute = _FLAG_NAMES.get(name, name.lower())
        if attribute not in self.__slots__ and attribute not in ("contiguous", "fortran", "fnc", "forc"):
            raise KeyError(f"flags: {name!r} is none of C_CONTIGUOUS, F_CONTIGUOUS, OWNDATA, WRITEABLE")
        value: bool = getattr(self, attribute)
        return value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flags) and all(getattr(self, n) == getattr(other, n) for n in self.__slots__)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, name) for name in self.__slots__))

    def __repr__(self) -> str:
        return "\n".join(f"  {name.upper()} : {getattr(self, name)}" for name in self.__slots__)
