"""The native half of dlbridge.nd, made by the extension module on first use."""

from dlbridge import _core

globals().update({name: value for name, value in vars(_core.load_nd()).items() if not name.startswith("__")})
