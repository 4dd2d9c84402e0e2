"""Types of the names of dlbridge.nd: written by tools/write_stubs.py."""

from dlbridge.nd import cuda as cuda
from dlbridge.nd import fft as fft
from dlbridge.nd import lib as lib
from dlbridge.nd import linalg as linalg
from dlbridge.nd import polynomial as polynomial
from dlbridge.nd import random as random
from dlbridge.nd._abstract import complexfloating as complexfloating
from dlbridge.nd._abstract import floating as floating
from dlbridge.nd._abstract import generic as generic
from dlbridge.nd._abstract import inexact as inexact
from dlbridge.nd._abstract import integer as integer
from dlbridge.nd._abstract import number as number
from dlbridge.nd._abstract import signedinteger as signedinteger
from dlbridge.nd._abstract import unsignedinteger as unsignedinteger
from dlbridge.nd._arguments import AxisError as AxisError
from dlbridge.nd._arguments import broadcast_shapes as broadcast_shapes
from dlbridge.nd._array_api import __array_namespace_info__ as __array_namespace_info__
from dlbridge.nd._bits import packbits as packbits
from dlbridge.nd._bits import unpackbits as unpackbits
from dlbridge.nd._blocks import block as block
from dlbridge.nd._concatenators import c_ as c_
from dlbridge.nd._concatenators import r_ as r_
from dlbridge.nd._correlation import corrcoef as corrcoef
from dlbridge.nd._correlation import cov as cov
from dlbridge.nd._creation import array as array
from dlbridge.nd._creation import asanyarray as asanyarray
from dlbridge.nd._creation import asarray as asarray
from dlbridge.nd._creation import ascontiguousarray as ascontiguousarray
from dlbridge.nd._creation import asfortranarray as asfortranarray
from dlbridge.nd._creation import asnumpy as asnumpy
from dlbridge.nd._creation import copy as copy
from dlbridge.nd._creation import empty_like as empty_like
from dlbridge.nd._creation import from_dlpack as from_dlpack
from dlbridge.nd._creation import frombuffer as frombuffer
from dlbridge.nd._creation import fromDlpack as fromDlpack
from dlbridge.nd._creation import fromfunction as fromfunction
from dlbridge.nd._creation import fromiter as fromiter
from dlbridge.nd._creation import full as full
from dlbridge.nd._creation import full_like as full_like
from dlbridge.nd._creation import get_array_module as get_array_module
from dlbridge.nd._creation import ones as ones
from dlbridge.nd._creation import ones_like as ones_like
from dlbridge.nd._creation import zeros as zeros
from dlbridge.nd._creation import zeros_like as zeros_like
from dlbridge.nd._dtypes import can_cast as can_cast
from dlbridge.nd._dtypes import common_type as common_type
from dlbridge.nd._dtypes import dtype as dtype
from dlbridge.nd._dtypes import finfo as finfo
from dlbridge.nd._dtypes import iinfo as iinfo
from dlbridge.nd._dtypes import isdtype as isdtype
from dlbridge.nd._dtypes import issubdtype as issubdtype
from dlbridge.nd._dtypes import min_scalar_type as min_scalar_type
from dlbridge.nd._dtypes import promote_types as promote_types
from dlbridge.nd._dtypes import result_type as result_type
from dlbridge.nd._einsum import einsum as einsum
from dlbridge.nd._elementwise import angle as angle
from dlbridge.nd._elementwise import around as around
from dlbridge.nd._elementwise import astype as astype
from dlbridge.nd._elementwise import clip as clip
from dlbridge.nd._elementwise import divmod as divmod
from dlbridge.nd._elementwise import fix as fix
from dlbridge.nd._elementwise import float_power as float_power
from dlbridge.nd._elementwise import frexp as frexp
from dlbridge.nd._elementwise import i0 as i0
from dlbridge.nd._elementwise import imag as imag
from dlbridge.nd._elementwise import isneginf as isneginf
from dlbridge.nd._elementwise import isposinf as isposinf
from dlbridge.nd._elementwise import ldexp as ldexp
from dlbridge.nd._elementwise import modf as modf
from dlbridge.nd._elementwise import nan_to_num as nan_to_num
from dlbridge.nd._elementwise import real as real
from dlbridge.nd._elementwise import real_if_close as real_if_close
from dlbridge.nd._elementwise import round as round
from dlbridge.nd._elementwise import spacing as spacing
from dlbridge.nd._files import NpzFile as NpzFile
from dlbridge.nd._files import fromfile as fromfile
from dlbridge.nd._files import fromstring as fromstring
from dlbridge.nd._files import genfromtxt as genfromtxt
from dlbridge.nd._files import load as load
from dlbridge.nd._files import loadtxt as loadtxt
from dlbridge.nd._files import save as save
from dlbridge.nd._files import savetxt as savetxt
from dlbridge.nd._files import savez as savez
from dlbridge.nd._files import savez_compressed as savez_compressed
from dlbridge.nd._flat import flatiter as flatiter
from dlbridge.nd._functional import asarray_chkfinite as asarray_chkfinite
from dlbridge.nd._functional import byte_bounds as byte_bounds
from dlbridge.nd._functional import require as require
from dlbridge.nd._functional import vectorize as vectorize
from dlbridge.nd._grids import diag as diag
from dlbridge.nd._grids import diag_indices as diag_indices
from dlbridge.nd._grids import diag_indices_from as diag_indices_from
from dlbridge.nd._grids import diagflat as diagflat
from dlbridge.nd._grids import diagonal as diagonal
from dlbridge.nd._grids import eye as eye
from dlbridge.nd._grids import fill_diagonal as fill_diagonal
from dlbridge.nd._grids import identity as identity
from dlbridge.nd._grids import indices as indices
from dlbridge.nd._grids import mask_indices as mask_indices
from dlbridge.nd._grids import meshgrid as meshgrid
from dlbridge.nd._grids import mgrid as mgrid
from dlbridge.nd._grids import ogrid as ogrid
from dlbridge.nd._grids import trace as trace
from dlbridge.nd._grids import tri as tri
from dlbridge.nd._grids import tril as tril
from dlbridge.nd._grids import tril_indices as tril_indices
from dlbridge.nd._grids import tril_indices_from as tril_indices_from
from dlbridge.nd._grids import triu as triu
from dlbridge.nd._grids import triu_indices as triu_indices
from dlbridge.nd._grids import triu_indices_from as triu_indices_from
from dlbridge.nd._grids import vander as vander
from dlbridge.nd._histograms import bincount as bincount
from dlbridge.nd._histograms import histogram as histogram
from dlbridge.nd._histograms import histogram2d as histogram2d
from dlbridge.nd._histograms import histogram_bin_edges as histogram_bin_edges
from dlbridge.nd._histograms import histogramdd as histogramdd
from dlbridge.nd._indexing import apply_along_axis as apply_along_axis
from dlbridge.nd._indexing import apply_over_axes as apply_over_axes
from dlbridge.nd._indexing import choose as choose
from dlbridge.nd._indexing import compress as compress
from dlbridge.nd._indexing import copyto as copyto
from dlbridge.nd._indexing import ix_ as ix_
from dlbridge.nd._indexing import piecewise as piecewise
from dlbridge.nd._indexing import place as place
from dlbridge.nd._indexing import put as put
from dlbridge.nd._indexing import put_along_axis as put_along_axis
from dlbridge.nd._indexing import putmask as putmask
from dlbridge.nd._indexing import ravel_multi_index as ravel_multi_index
from dlbridge.nd._indexing import select as select
from dlbridge.nd._indexing import take as take
from dlbridge.nd._indexing import take_along_axis as take_along_axis
from dlbridge.nd._indexing import unravel_index as unravel_index
from dlbridge.nd._interpolation import interp as interp
from dlbridge.nd._interpolation import trapezoid as trapezoid
from dlbridge.nd._joining import append as append
from dlbridge.nd._joining import column_stack as column_stack
from dlbridge.nd._joining import concat as concat
from dlbridge.nd._joining import concatenate as concatenate
from dlbridge.nd._joining import delete as delete
from dlbridge.nd._joining import dstack as dstack
from dlbridge.nd._joining import hstack as hstack
from dlbridge.nd._joining import insert as insert
from dlbridge.nd._joining import repeat as repeat
from dlbridge.nd._joining import resize as resize
from dlbridge.nd._joining import row_stack as row_stack
from dlbridge.nd._joining import stack as stack
from dlbridge.nd._joining import tile as tile
from dlbridge.nd._joining import trim_zeros as trim_zeros
from dlbridge.nd._joining import vstack as vstack
from dlbridge.nd._kernels.elementwise import ElementwiseKernel as ElementwiseKernel
from dlbridge.nd._kernels.fusion import fuse as fuse
from dlbridge.nd._kernels.raw import RawKernel as RawKernel
from dlbridge.nd._kernels.raw import RawModule as RawModule
from dlbridge.nd._kernels.reduction import ReductionKernel as ReductionKernel
from dlbridge.nd._logic import allclose as allclose
from dlbridge.nd._logic import array_equal as array_equal
from dlbridge.nd._logic import array_equiv as array_equiv
from dlbridge.nd._logic import isclose as isclose
from dlbridge.nd._logic import iscomplex as iscomplex
from dlbridge.nd._logic import iscomplexobj as iscomplexobj
from dlbridge.nd._logic import isfortran as isfortran
from dlbridge.nd._logic import isreal as isreal
from dlbridge.nd._logic import isrealobj as isrealobj
from dlbridge.nd._logic import isscalar as isscalar
from dlbridge.nd._logic import may_share_memory as may_share_memory
from dlbridge.nd._logic import shares_memory as shares_memory
from dlbridge.nd._manipulation import array_split as array_split
from dlbridge.nd._manipulation import atleast_1d as atleast_1d
from dlbridge.nd._manipulation import atleast_2d as atleast_2d
from dlbridge.nd._manipulation import atleast_3d as atleast_3d
from dlbridge.nd._manipulation import broadcast as broadcast
from dlbridge.nd._manipulation import broadcast_arrays as broadcast_arrays
from dlbridge.nd._manipulation import broadcast_to as broadcast_to
from dlbridge.nd._manipulation import dsplit as dsplit
from dlbridge.nd._manipulation import expand_dims as expand_dims
from dlbridge.nd._manipulation import flip as flip
from dlbridge.nd._manipulation import fliplr as fliplr
from dlbridge.nd._manipulation import flipud as flipud
from dlbridge.nd._manipulation import hsplit as hsplit
from dlbridge.nd._manipulation import matrix_transpose as matrix_transpose
from dlbridge.nd._manipulation import moveaxis as moveaxis
from dlbridge.nd._manipulation import ndim as ndim
from dlbridge.nd._manipulation import permute_dims as permute_dims
from dlbridge.nd._manipulation import ravel as ravel
from dlbridge.nd._manipulation import reshape as reshape
from dlbridge.nd._manipulation import roll as roll
from dlbridge.nd._manipulation import rollaxis as rollaxis
from dlbridge.nd._manipulation import rot90 as rot90
from dlbridge.nd._manipulation import shape as shape
from dlbridge.nd._manipulation import size as size
from dlbridge.nd._manipulation import split as split
from dlbridge.nd._manipulation import squeeze as squeeze
from dlbridge.nd._manipulation import swapaxes as swapaxes
from dlbridge.nd._manipulation import transpose as transpose
from dlbridge.nd._manipulation import unstack as unstack
from dlbridge.nd._manipulation import vsplit as vsplit
from dlbridge.nd._nan import nanargmax as nanargmax
from dlbridge.nd._nan import nanargmin as nanargmin
from dlbridge.nd._nan import nancumprod as nancumprod
from dlbridge.nd._nan import nancumsum as nancumsum
from dlbridge.nd._nan import nanmax as nanmax
from dlbridge.nd._nan import nanmean as nanmean
from dlbridge.nd._nan import nanmin as nanmin
from dlbridge.nd._nan import nanprod as nanprod
from dlbridge.nd._nan import nanstd as nanstd
from dlbridge.nd._nan import nansum as nansum
from dlbridge.nd._nan import nanvar as nanvar
from dlbridge.nd._nan_quantiles import nanmedian as nanmedian
from dlbridge.nd._nan_quantiles import nanpercentile as nanpercentile
from dlbridge.nd._nan_quantiles import nanquantile as nanquantile
from dlbridge.nd._native import CudaArray as CudaArray
from dlbridge.nd._native import HostArray as HostArray
from dlbridge.nd._native import empty as empty
from dlbridge.nd._native import ndarray as ndarray
from dlbridge.nd._native import ufunc as ufunc
from dlbridge.nd._padding import pad as pad
from dlbridge.nd._polynomials import poly as poly
from dlbridge.nd._polynomials import poly1d as poly1d
from dlbridge.nd._polynomials import polyadd as polyadd
from dlbridge.nd._polynomials import polyfit as polyfit
from dlbridge.nd._polynomials import polymul as polymul
from dlbridge.nd._polynomials import polysub as polysub
from dlbridge.nd._polynomials import polyval as polyval
from dlbridge.nd._polynomials import roots as roots
from dlbridge.nd._printing import array2string as array2string
from dlbridge.nd._printing import array_repr as array_repr
from dlbridge.nd._printing import array_str as array_str
from dlbridge.nd._printing import base_repr as base_repr
from dlbridge.nd._printing import binary_repr as binary_repr
from dlbridge.nd._printing import format_float_positional as format_float_positional
from dlbridge.nd._printing import format_float_scientific as format_float_scientific
from dlbridge.nd._products import dot as dot
from dlbridge.nd._products import inner as inner
from dlbridge.nd._products import kron as kron
from dlbridge.nd._products import matmul as matmul
from dlbridge.nd._products import outer as outer
from dlbridge.nd._products import tensordot as tensordot
from dlbridge.nd._products import vdot as vdot
from dlbridge.nd._products import vecdot as vecdot
from dlbridge.nd._quantiles import median as median
from dlbridge.nd._quantiles import percentile as percentile
from dlbridge.nd._quantiles import quantile as quantile
from dlbridge.nd._ranges import arange as arange
from dlbridge.nd._ranges import geomspace as geomspace
from dlbridge.nd._ranges import linspace as linspace
from dlbridge.nd._ranges import logspace as logspace
from dlbridge.nd._searching import argmax as argmax
from dlbridge.nd._searching import argmin as argmin
from dlbridge.nd._searching import argpartition as argpartition
from dlbridge.nd._searching import argsort as argsort
from dlbridge.nd._searching import argwhere as argwhere
from dlbridge.nd._searching import digitize as digitize
from dlbridge.nd._searching import extract as extract
from dlbridge.nd._searching import flatnonzero as flatnonzero
from dlbridge.nd._searching import lexsort as lexsort
from dlbridge.nd._searching import nonzero as nonzero
from dlbridge.nd._searching import partition as partition
from dlbridge.nd._searching import searchsorted as searchsorted
from dlbridge.nd._searching import sort as sort
from dlbridge.nd._searching import sort_complex as sort_complex
from dlbridge.nd._searching import where as where
from dlbridge.nd._sets import intersect1d as intersect1d
from dlbridge.nd._sets import isin as isin
from dlbridge.nd._sets import setdiff1d as setdiff1d
from dlbridge.nd._sets import setxor1d as setxor1d
from dlbridge.nd._sets import union1d as union1d
from dlbridge.nd._sets import unique as unique
from dlbridge.nd._sets import unique_all as unique_all
from dlbridge.nd._sets import unique_counts as unique_counts
from dlbridge.nd._sets import unique_inverse as unique_inverse
from dlbridge.nd._sets import unique_values as unique_values
from dlbridge.nd._signals import bartlett as bartlett
from dlbridge.nd._signals import blackman as blackman
from dlbridge.nd._signals import convolve as convolve
from dlbridge.nd._signals import correlate as correlate
from dlbridge.nd._signals import gradient as gradient
from dlbridge.nd._signals import hamming as hamming
from dlbridge.nd._signals import hanning as hanning
from dlbridge.nd._signals import kaiser as kaiser
from dlbridge.nd._signals import unwrap as unwrap
from dlbridge.nd._statistics import all as all
from dlbridge.nd._statistics import amax as amax
from dlbridge.nd._statistics import amin as amin
from dlbridge.nd._statistics import any as any
from dlbridge.nd._statistics import average as average
from dlbridge.nd._statistics import count_nonzero as count_nonzero
from dlbridge.nd._statistics import cumprod as cumprod
from dlbridge.nd._statistics import cumsum as cumsum
from dlbridge.nd._statistics import cumulative_prod as cumulative_prod
from dlbridge.nd._statistics import cumulative_sum as cumulative_sum
from dlbridge.nd._statistics import diff as diff
from dlbridge.nd._statistics import ediff1d as ediff1d
from dlbridge.nd._statistics import max as max
from dlbridge.nd._statistics import mean as mean
from dlbridge.nd._statistics import min as min
from dlbridge.nd._statistics import prod as prod
from dlbridge.nd._statistics import ptp as ptp
from dlbridge.nd._statistics import std as std
from dlbridge.nd._statistics import sum as sum
from dlbridge.nd._statistics import var as var
from dlbridge.nd._vectors import cross as cross
from dlbridge.nd._vectors import matvec as matvec
from dlbridge.nd._vectors import vecmat as vecmat
from dlbridge.nd.cuda import get_default_memory_pool as get_default_memory_pool
from dlbridge.nd.cuda import get_default_pinned_memory_pool as get_default_pinned_memory_pool

abs: ufunc
absolute: ufunc
acos: ufunc
acosh: ufunc
add: ufunc
arccos: ufunc
arccosh: ufunc
arcsin: ufunc
arcsinh: ufunc
arctan: ufunc
arctan2: ufunc
arctanh: ufunc
asin: ufunc
asinh: ufunc
atan: ufunc
atan2: ufunc
atanh: ufunc
bitwise_and: ufunc
bitwise_count: ufunc
bitwise_invert: ufunc
bitwise_left_shift: ufunc
bitwise_not: ufunc
bitwise_or: ufunc
bitwise_right_shift: ufunc
bitwise_xor: ufunc
cbrt: ufunc
ceil: ufunc
conj: ufunc
conjugate: ufunc
copysign: ufunc
cos: ufunc
cosh: ufunc
deg2rad: ufunc
degrees: ufunc
divide: ufunc
equal: ufunc
erf: ufunc
exp: ufunc
exp2: ufunc
expit: ufunc
expm1: ufunc
fabs: ufunc
floor: ufunc
floor_divide: ufunc
fmax: ufunc
fmin: ufunc
fmod: ufunc
gcd: ufunc
greater: ufunc
greater_equal: ufunc
heaviside: ufunc
hypot: ufunc
invert: ufunc
isfinite: ufunc
isinf: ufunc
isnan: ufunc
lcm: ufunc
left_shift: ufunc
less: ufunc
less_equal: ufunc
log: ufunc
log10: ufunc
log1p: ufunc
log2: ufunc
logaddexp: ufunc
logaddexp2: ufunc
logical_and: ufunc
logical_not: ufunc
logical_or: ufunc
logical_xor: ufunc
maximum: ufunc
minimum: ufunc
mod: ufunc
multiply: ufunc
negative: ufunc
nextafter: ufunc
not_equal: ufunc
positive: ufunc
pow: ufunc
power: ufunc
rad2deg: ufunc
radians: ufunc
reciprocal: ufunc
remainder: ufunc
right_shift: ufunc
rint: ufunc
rsqrt: ufunc
sign: ufunc
signbit: ufunc
sin: ufunc
sinc: ufunc
sinh: ufunc
sqrt: ufunc
square: ufunc
subtract: ufunc
tan: ufunc
tanh: ufunc
true_divide: ufunc
trunc: ufunc

bfloat16: dtype
bool: dtype
bool_: dtype
byte: dtype
cdouble: dtype
complex128: dtype
complex64: dtype
csingle: dtype
double: dtype
float16: dtype
float32: dtype
float64: dtype
half: dtype
int16: dtype
int32: dtype
int64: dtype
int8: dtype
int_: dtype
intc: dtype
intp: dtype
long: dtype
longlong: dtype
short: dtype
single: dtype
ubyte: dtype
uint: dtype
uint16: dtype
uint32: dtype
uint64: dtype
uint8: dtype
uintc: dtype
uintp: dtype
ulong: dtype
ulonglong: dtype
ushort: dtype

e: float
euler_gamma: float
inf: float
nan: float
pi: float
newaxis: None
__array_api_version__: str
