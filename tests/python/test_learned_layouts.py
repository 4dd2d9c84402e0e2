"""DLBRIDGE_LEARNED_LAYOUTS=0: nobody's private memory is looked at, and everything else stays as it is."""

import pytest
from child_process import run_python

pytest.importorskip("torch", reason="torch is not installed")

ASKED = """
import torch, dlbridge
asked = []
public = torch.Tensor.is_neg
torch.Tensor.is_neg = lambda tensor: asked.append(tensor) or public(tensor)
for _ in range(3):
    assert dlbridge.asdlpack(torch.ones(3)).shape == (3,)
print(len(asked))
"""

REFUSED = """
import torch, dlbridge
lazy = torch.zeros(3, dtype=torch.complex64).conj()
for tensor in (torch.ones(3, requires_grad=True), lazy, lazy.imag):
    try:
        dlbridge.asdlpack(tensor)
    except dlbridge.ExchangeError as error:
        assert "torch.Tensor" in str(error)
    else:
        raise AssertionError("taken")
"""


@pytest.mark.parametrize(("switch", "asked"), [("0", 3), ("1", 0)])
def test_the_switch_decides_whether_pytorch_is_asked(switch, asked):
    assert run_python(ASKED, DLBRIDGE_LEARNED_LAYOUTS=switch).stdout.split() == [str(asked)]


@pytest.mark.parametrize("switch", ["0", "1"])
def test_what_pytorch_cannot_say_is_refused_either_way(switch):
    run_python(REFUSED, DLBRIDGE_LEARNED_LAYOUTS=switch)
