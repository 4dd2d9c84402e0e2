"""What the tests of Arrow share: the structs and producers of the conformance kit, and blocks of metadata."""

import json

from dlbridge.tests.conformance._arrow_abi import (
    RELEASE,
    Array,
    DeviceArray,
    DeviceStream,
    Schema,
    Stream,
    base_of,
    capsule,
    move,
    pack_metadata,
    release,
    struct_of,
)
from dlbridge.tests.conformance._arrow_adversary import Chunks, Column, DeviceChunks, Maker, OnDevice

__all__ = [
    "RELEASE",
    "Array",
    "Chunks",
    "Column",
    "DeviceArray",
    "DeviceChunks",
    "DeviceStream",
    "Maker",
    "OnDevice",
    "Schema",
    "Stream",
    "base_of",
    "capsule",
    "fixed_shape",
    "metadata",
    "move",
    "release",
    "struct_of",
]


def metadata(**pairs):
    """The block of key-value pairs; `ext` and `json` are the two keys of an extension type."""
    keys = {"ext": "ARROW:extension:name", "json": "ARROW:extension:metadata"}
    texts = ((keys.get(key, key), value) for key, value in pairs.items())
    return pack_metadata([(k.encode(), v if isinstance(v, bytes) else v.encode()) for k, v in texts])


def fixed_shape(shape, **more):
    return metadata(ext="arrow.fixed_shape_tensor", json=json.dumps({"shape": shape, **more}))
