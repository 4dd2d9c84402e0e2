"""Planted frameworks: packages with an entry point, as a third party would install them."""

import textwrap

# A library whose arrays work: a bytearray behind __array_interface__. The faulty ones change parts of it.
SOUND = """
    import ctypes

    class Array:
        def __init__(self, values):
            self.data = bytearray(values)
            self.pointer = ctypes.addressof(ctypes.c_char.from_buffer(self.data))

        @property
        def __array_interface__(self):
            return {"shape": (len(self.data),), "typestr": "|u1", "data": (self.pointer, False), "version": 3}

    def take(source):
        return memoryview(source)
"""

ADAPTER = """
    from dlbridge.tests.frameworks import ArrayType, Framework, Look

    FRAMEWORK = Framework(
        {name!r},
        {library!r},
        (
            ArrayType(
                {name!r},
                "{library}.Array({{values}})",
                {{"uint8": ""}},
                Look("list(x.data)", "x.pointer", "x.data.__setitem__(0, value)"),
                {{"contiguous": "{{x}}"}},
                ("array_interface",),
                flat=True,
            ),
        ),
        takes={{"buffer": "{library}.take(source)"}},
        look=Look("x.tolist()", "", "x.__setitem__(0, value)", "x.readonly"),
    )
"""


def plant(folder, name, library_code=SOUND, adapter_code=None):
    """Writes a library, its adapter and the metadata that registers it; `folder` must come onto the path."""
    library = f"{name}_lib"
    adapter = textwrap.dedent(ADAPTER).format(name=name, library=library)
    (folder / f"{library}.py").write_text(textwrap.dedent(library_code))
    (folder / f"{name}_adapter.py").write_text(adapter if adapter_code is None else textwrap.dedent(adapter_code))
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(f"[dlbridge.frameworks]\n{name} = {name}_adapter:FRAMEWORK\n")


def sound_but(*changes):
    """SOUND with (old, new) pieces of its text replaced, each of which must be there."""
    code = SOUND
    for old, new in changes:
        assert old in code, old
        code = code.replace(old, new)
    return code
