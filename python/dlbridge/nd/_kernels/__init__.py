"""User kernels: RawKernel, RawModule, ElementwiseKernel, ReductionKernel and fuse, compiled by NVRTC when first used.

`raw` holds kernels of the user's own source; `elementwise` and `reduction` write the kernel around an expression with
`codegen`; `fusion` traces a Python function into such an expression. `nvrtc` finds the compiler and `cache` keeps what
it made on disk.
"""
