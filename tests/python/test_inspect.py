"""inspect(): offers, descriptors, refusals and disagreements; capsules are looked at, not consumed."""

import array
import json

import dlbridge
import pytest
from dlbridge import asdlpack, inspect

PROTOCOLS = ["dlpack", "array_interface", "cuda_array_interface", "buffer", "arrow"]


def test_bytes_offer_the_buffer_protocol_alone():
    report = inspect(b"abc")
    assert report.kind == "object"
    assert report.type == "builtins.bytes"
    assert list(report.offers) == PROTOCOLS
    assert [name for name, offer in report.offers.items() if offer.offered] == ["buffer"]
    found = report.offers["buffer"].descriptor
    assert (found.shape, found.strides, found.dtype, found.device, found.readonly) == ((3,), (1,), "uint8", "cpu", True)
    assert report.best == "buffer"
    assert report.disagreements == []


def test_object_with_no_protocol_is_reported_not_raised():
    report = inspect(object())
    assert report.best == ""
    assert "ProtocolError" in report.refusal
    assert not any(offer.offered for offer in report.offers.values())


def test_refusal_has_its_reason():
    report = inspect(memoryview(b"abcd").cast("c"))
    assert report.best == "buffer" or report.refusal
    numpy = pytest.importorskip("numpy", reason="NumPy makes the foreign byte order")
    report = inspect(numpy.arange(3, dtype=">i4"))
    assert report.offers["buffer"].offered
    assert "byte order" in report.offers["buffer"].refusal
    assert report.refusal


def test_numpy_offers_three_protocols_that_agree():
    numpy = pytest.importorskip("numpy", reason="NumPy is the producer")
    report = inspect(numpy.arange(6.0).reshape(2, 3)[:, ::2])
    assert report.best == "array_interface"
    assert [name for name, offer in report.offers.items() if offer.descriptor] == [
        "dlpack",
        "array_interface",
        "buffer",
    ]
    assert report.disagreements == []


class Liar:
    """Says one shape by one protocol and another by the other."""

    def __init__(self):
        self.memory = array.array("d", range(6))
        self.__array_interface__ = {
            "version": 3,
            "shape": (2,),
            "typestr": "<f8",
            "data": (self.memory.buffer_info()[0], False),
        }

    def __dlpack__(self, **keywords):
        return asdlpack(self.memory).__dlpack__(**keywords)

    def __dlpack_device__(self):
        return (1, 0)


def test_disagreements_are_named():
    report = inspect(Liar())
    assert report.disagreements == ["shape: dlpack says (6,), array_interface says (2,)"]


class Broken:
    @property
    def __cuda_array_interface__(self):
        raise AttributeError("only on the GPU")

    @property
    def __array_interface__(self):
        raise RuntimeError("lost")


def test_attribute_on_the_type_but_not_on_the_instance():
    report = inspect(Broken())
    offer = report.offers["cuda_array_interface"]
    assert (offer.on_type, offer.on_instance, offer.refusal) == (True, False, "only on the GPU")
    assert "lost" in report.offers["array_interface"].refusal


@pytest.mark.parametrize("max_version", [None, (1, 0)], ids=["legacy", "versioned"])
def test_capsule_is_not_consumed(max_version):
    capsule = asdlpack(bytearray(b"abc")).__dlpack__(max_version=max_version)
    report = inspect(capsule)
    assert report.kind == "capsule"
    assert report.capsule["shape"] in ((3,), [3])
    assert asdlpack(capsule).shape == (3,)
    assert inspect(capsule).refusal  # consumed now


def test_foreign_capsule_is_reported_not_raised():
    import datetime

    report = inspect(datetime.datetime_CAPI)
    assert report.kind == "capsule"
    assert report.refusal


def test_todict_is_plain():
    for obj in (b"abc", object(), Liar(), asdlpack(b"abc").__dlpack__(max_version=(1, 0))):
        plain = inspect(obj).todict()
        assert json.loads(json.dumps(plain)) == plain


def test_text_names_every_protocol():
    text = str(inspect(b"abc"))
    assert repr(inspect(b"abc")) == text
    for name in PROTOCOLS:
        assert name in text
    assert "not offered" in text and "uint8" in text


def test_exchange_api_is_seen_on_the_type():
    assert inspect(asdlpack(b"abc")).c_exchange_api
    assert not inspect(b"abc").c_exchange_api


def test_nothing_leaks():
    before = dlbridge._core.live_counts()
    for _ in range(50):
        inspect(Liar())
        inspect(asdlpack(bytearray(b"abc")).__dlpack__())
    assert dlbridge._core.live_counts() == before
