"""Daemon threads that want the GIL back after the interpreter has begun to end.

CPython before 3.14 ends such a thread by unwinding its stack, which ends the process where it meets a noexcept frame of
C++: a destructor that takes the GIL back, a deleter, a C slot. Each case runs in an interpreter of its own.
"""

import textwrap

import pytest
from child_process import run_python

# What each thread does forever, with `inside` set where it has let go of the GIL.
CASES = {
    "a copy": """
        source = dlbridge.asdlpack(bytearray(8 << 20))
        def work():
            inside.set()
            dlbridge.asdlpack(source, copy=True)
    """,
    "a Python __dlpack__": """
        class Producer:
            def __dlpack__(self, **arguments):
                wait()
                raise BufferError
            def __dlpack_device__(self):
                return 1, 0
        def work():
            with contextlib.suppress(BufferError):
                dlbridge.asdlpack(Producer())
    """,
    "a Python __dlpack_device__": """
        class Producer:
            def __dlpack__(self, **arguments):
                raise BufferError
            def __dlpack_device__(self):
                wait()
                return 1, 0
        def work():
            with contextlib.suppress(BufferError):
                dlbridge.asdlpack(Producer())
    """,
    "a property": """
        class Producer:
            @property
            def __array_interface__(self):
                wait()
                raise BufferError
        def work():
            with contextlib.suppress(BufferError):
                dlbridge.asdlpack(Producer())
    """,
    "an __index__": """
        class Extent:
            def __index__(self):
                wait()
                return 1
        class Producer:
            data = bytearray(1)
            @property
            def __array_interface__(self):
                return {"shape": (Extent(),), "typestr": "|u1", "version": 3, "data": self.data}
        def work():
            dlbridge.asdlpack(Producer())
    """,
    "an owner's __del__": """
        class Producer:
            data = bytearray(1)
            __array_interface__ = {"shape": (1,), "typestr": "|u1", "version": 3, "data": data}
            def __del__(self):
                wait()
        def work():
            dlbridge.asdlpack(Producer())
    """,
    "the __del__ behind an export": """
        class Producer(bytearray):
            def __del__(self):
                wait()
        def work():
            capsule = dlbridge.asdlpack(Producer(1)).__dlpack__(max_version=(1, 0))
            del capsule
    """,
    "the __del__ behind an array of nd": """
        from dlbridge import nd
        class Producer(bytearray):
            def __del__(self):
                wait()
        def work():
            nd.asarray(Producer(8))
    """,
    "the __del__ behind a capsule": """
        class Producer(bytearray):
            def __del__(self):
                wait()
        def work():
            dlbridge.asdlpack(dlbridge.asdlpack(Producer(1)).__dlpack__(max_version=(1, 0)))
    """,
}

SCRIPT = """
    import contextlib, threading, time
    import dlbridge

    inside = threading.Event()

    def wait():
        inside.set()
        time.sleep(0.001)
    {case}
    def forever():
        while True:
            work()

    class Last:
        '''Keeps the interpreter ending until every thread has come for the GIL many times over.'''
        def __del__(self, sleep=time.sleep):
            for _ in range(100):
                sleep(0.002)

    last = Last()
    for _ in range(4):
        threading.Thread(target=forever, daemon=True).start()
    inside.wait()
    print("ends")
"""


@pytest.mark.parametrize("case", CASES)
def test_a_thread_that_comes_too_late_for_the_gil_does_not_end_the_process(case):
    script = textwrap.dedent(SCRIPT).format(case=textwrap.dedent(CASES[case]))
    done = run_python(script)
    assert (done.stdout, done.stderr) == ("ends\n", "")
