"""Reading DLPack: capsules of every kind and objects with __dlpack__."""

import ctypes as ct
import sys

import pytest
from dlbridge import DataError, asdlpack
from dlbridge.tests.conformance._abi import capsule_name, new_capsule, rename
from provoke import BOOL, CPU, FLOAT32, UINT8, VERSIONS, Managed, Producer, assert_refused, delete_unconsumed, floats

# --- capsules ---------------------------------------------------------------------------------------------------------


@VERSIONS
def test_a_consumed_capsule_carries_the_used_name(version):
    managed = Managed(version=version)
    capsule = managed.capsule(destructor=delete_unconsumed)
    tensor = asdlpack(capsule)
    assert capsule_name(capsule) == (b"used_dltensor" if version is None else b"used_dltensor_versioned")
    assert floats(tensor) == [0, 1, 2]
    assert tensor.owner is None
    assert tensor.protocol == "dlpack"
    del capsule
    assert managed.deletions == 0
    del tensor
    assert managed.deletions == 1


@VERSIONS
def test_a_failed_import_also_consumes_the_capsule(version):
    """The rename comes before anything can fail (pytorch#56789), so that nobody deletes twice."""
    managed = Managed(ndim=-1, version=version)
    capsule = managed.capsule(destructor=delete_unconsumed)
    with pytest.raises(ValueError):
        asdlpack(capsule)
    assert capsule_name(capsule).startswith(b"used_")
    assert managed.deletions == 1
    del capsule
    assert managed.deletions == 1


@VERSIONS
def test_a_second_import_says_already_consumed(version):
    managed = Managed(version=version)
    capsule = managed.capsule()
    tensor = asdlpack(capsule)
    with pytest.raises(DataError, match="already consumed"):
        asdlpack(capsule)
    assert managed.deletions == 0
    del tensor
    assert managed.deletions == 1


@VERSIONS
def test_a_capsule_dropped_unconsumed_is_deleted_once(version):
    managed = Managed(version=version)
    capsule = managed.capsule(destructor=delete_unconsumed)
    del capsule
    assert managed.deletions == 1


@VERSIONS
def test_a_null_deleter_is_accepted(version):
    managed = Managed(version=version, deleter=False)
    tensor = asdlpack(managed.capsule())
    assert floats(tensor) == [0, 1, 2]
    del tensor
    assert managed.deletions == 0


@VERSIONS
def test_a_null_deleter_is_accepted_where_the_import_fails(version):
    """The failing path must not call it either."""
    managed = Managed(version=version, deleter=False, shape=(-1,))
    with pytest.raises(ValueError):
        asdlpack(managed.capsule())


def test_the_deleter_sees_no_pending_exception():
    """A deleter that runs Python code while an error is being reported does not lose the error."""

    class Loud(Managed):
        def _count(self, address):
            super()._count(address)
            assert sys.exc_info() == (None, None, None)
            try:
                raise RuntimeError("inside the deleter")
            except RuntimeError:
                pass

    assert_refused(Loud(ndim=-1), DataError, "ndim is -1")


@pytest.mark.parametrize("name", [b"dltensor2", b"", b"DLTENSOR", b"arrow_array", None], ids=str)
def test_a_capsule_with_another_name_is_a_type_error(name):
    managed = Managed()
    capsule = managed.capsule(name=name, destructor=None)
    with pytest.raises(TypeError, match="capsule is named .*not 'dltensor'"):
        asdlpack(capsule)
    assert capsule_name(capsule) == name
    assert managed.deletions == 0


def test_the_name_of_the_capsule_decides_not_what_was_asked():
    """A producer that ignores max_version returns a legacy capsule, one that has none a versioned."""
    for version in (None, (1, 0)):
        managed = Managed(version=version)
        producer = Producer(lambda managed=managed, **_: managed.capsule())
        tensor = asdlpack(producer)
        assert floats(tensor) == [0, 1, 2]
        del tensor
        assert managed.deletions == 1


# --- objects with __dlpack__ ------------------------------------------------------------------------------------------


def test_the_newest_signature_is_called_first():
    """A CPU producer is sent max_version and no stream."""
    managed = Managed()
    producer = Producer(lambda **_: managed.capsule())
    tensor = asdlpack(producer)
    assert [call["max_version"] for call in producer.calls] == [(1, 3)]
    assert producer.calls[0].get("stream") is None
    assert tensor.owner is producer


def test_a_producer_without_max_version_is_asked_again():
    """The older signature, whose capsule is a legacy one."""
    managed = Managed(version=None)

    class Old:
        def __dlpack__(self, *, stream=None):
            assert stream is None
            return managed.capsule()

        def __dlpack_device__(self):
            return CPU

    tensor = asdlpack(Old())
    assert floats(tensor) == [0, 1, 2]
    del tensor
    assert managed.deletions == 1


def test_a_producer_without_keywords_is_enough():
    managed = Managed(version=None)

    class Oldest:
        def __dlpack__(self):
            return managed.capsule()

    assert floats(asdlpack(Oldest())) == [0, 1, 2]
    assert managed.deletions == 1


def test_an_object_with_dlpack_only_is_read():
    """`from_dlpack` needs __dlpack_device__; without it asdlpack() takes the object for a host array."""
    managed = Managed()

    class NoDevice:
        def __dlpack__(self, **_):
            return managed.capsule()

    assert asdlpack(NoDevice()).device == "cpu"


def test_from_dlpack_finds_both_methods():
    """Consumers raise AttributeError where one is missing."""
    tensor = asdlpack(b"abc")
    assert callable(tensor.__dlpack__) and tensor.__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("pair", [None, 1, (1,), (1, 0, 0), ("cpu", 0), [1, 0], (2**40, 0)], ids=repr)
def test_a_malformed_device_pair_is_a_type_error(pair):
    """Of the producer's, here."""
    with pytest.raises(TypeError, match="__dlpack_device__.. is not a pair of integers"):
        asdlpack(Producer(lambda **_: None, device=pair))


def test_device_types_may_be_enumerations():
    """Torch and NumPy give an IntEnum."""
    import enum

    class Kind(enum.IntEnum):
        CPU = 1

    managed = Managed()
    assert asdlpack(Producer(lambda **_: managed.capsule(), device=(Kind.CPU, 0))).device == "cpu"


@pytest.mark.parametrize("error", [ValueError, BufferError, RuntimeError, KeyError])
def test_an_error_of_the_producer_is_not_retried(error):
    """Retry only for TypeError."""

    def fail(**_):
        raise error("from the producer")

    producer = Producer(fail)
    with pytest.raises(error, match="from the producer"):
        asdlpack(producer)
    assert len(producer.calls) == 1


def test_the_first_type_error_stays_on_the_chain():
    """The second error must not hide the one that says what is wrong."""

    class Broken:
        def __dlpack__(self, **options):
            raise TypeError(f"no {sorted(options)}")

    with pytest.raises(TypeError, match="no \\[\\]") as caught:
        asdlpack(Broken())
    assert "max_version" in str(caught.value.__context__)


@pytest.mark.parametrize("value", [42, None, "capsule", b"dltensor"], ids=repr)
def test_anything_but_a_capsule_is_a_type_error(value):
    with pytest.raises(TypeError, match="__dlpack__.. of .*Producer returned .*not a PyCapsule"):
        asdlpack(Producer(lambda **_: value))


def test_an_interrupt_is_not_swallowed():
    def interrupt(**_):
        raise KeyboardInterrupt

    class WithBuffer(bytearray):
        __dlpack__ = staticmethod(interrupt)

    with pytest.raises(KeyboardInterrupt):
        asdlpack(WithBuffer(b"abc"))


def test_the_property_itself_may_raise():
    class Raises:
        @property
        def __dlpack__(self):
            raise RuntimeError("from the property")

    with pytest.raises(RuntimeError, match="from the property"):
        asdlpack(Raises())


def test_a_producer_that_returns_one_capsule_twice():
    """The second import of the same capsule is refused, and the first stays good."""
    managed = Managed()
    capsule = managed.capsule()
    producer = Producer(lambda **_: capsule)
    tensor = asdlpack(producer)
    with pytest.raises(ValueError, match="already consumed"):
        asdlpack(producer)
    assert floats(tensor) == [0, 1, 2]


def test_a_producer_that_renamed_its_capsule_is_refused():
    managed = Managed()
    capsule = managed.capsule()
    rename(capsule, b"used_dltensor_versioned")
    with pytest.raises(ValueError, match="already consumed"):
        asdlpack(capsule)
    assert managed.deletions == 0


def test_the_pending_exception_of_the_caller_survives_a_deleter():
    """A tensor dies while an exception unwinds through its frame."""
    managed = Managed()

    def unwinds():
        tensor = asdlpack(managed.capsule())
        assert tensor.size == 3
        raise LookupError("the caller's own")

    with pytest.raises(LookupError, match="the caller's own") as caught:
        unwinds()
    caught.value.__traceback__ = None
    del caught
    assert managed.deletions == 1


def test_a_bool_capsule_is_read_as_bool():
    """kDLBool with 8 bits."""
    managed = Managed((ct.c_uint8 * 3)(1, 0, 1), dtype=BOOL)
    tensor = asdlpack(managed.capsule())
    assert tensor.dtype == "bool"
    assert floats(tensor) == [True, False, True]


def test_a_capsule_of_no_dlpack_struct_at_all():
    with pytest.raises(TypeError, match="named 'something'"):
        asdlpack(new_capsule(1, b"something"))


def test_the_memory_is_shared():
    managed = Managed((ct.c_uint8 * 4)(1, 2, 3, 4), shape=(4,), dtype=UINT8)
    view = memoryview(asdlpack(managed.capsule()))
    view[0] = 9
    assert managed.data[0] == 9
    managed.data[3] = 7
    assert view[3] == 7


@pytest.mark.parametrize("protocol", ["dlpack", None])
def test_capsules_are_dlpack_for_the_protocol_argument(protocol):
    managed = Managed(dtype=FLOAT32)
    assert asdlpack(managed.capsule(), protocol=protocol).protocol == "dlpack"
