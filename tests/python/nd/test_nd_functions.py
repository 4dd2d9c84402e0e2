"""Every function and method against NumPy's of the same name: expressions that both evaluate."""

import numpy as np
import pytest
from dlbridge import nd
from nd_support import both, check, evaluate, inputs, on_device

FUNCTIONS = """
xp.var(n[:, :1], axis=1); xp.std(f[4:5]); xp.var(f[3:5])
xp.sum(a); xp.sum(a, axis=0); xp.sum(a, 1, keepdims=True); xp.sum(i); xp.sum(m, axis=-1); xp.sum(u)
xp.sum(h, axis=(0, 2)); xp.sum(z, axis=0); xp.sum(z); xp.sum(b, dtype='float64'); xp.sum(r, axis=0)
xp.sum(t, axis=(1,)); xp.sum(c, axis=1); xp.sum(a, ()); xp.prod(w); xp.prod(i, axis=0); xp.prod(z); xp.prod(u[3:])
xp.max(a, axis=1); xp.max(f); xp.min(f[:6]); xp.min(i, axis=(0, 1)); xp.amax(h); xp.amin(g, 0); xp.max(m); xp.min(u)
xp.any(m, axis=0); xp.all(m); xp.any(z); xp.all(z); xp.all(a, axis=1, keepdims=True); xp.mean(a); xp.mean(i, axis=0)
xp.mean(h, axis=1); xp.mean(m); xp.mean(c); xp.mean(a, dtype='float32'); xp.var(a, axis=0); xp.var(i, ddof=1)
xp.var(c); xp.std(a, axis=1, ddof=1); xp.std(h); xp.std(a, correction=1); xp.count_nonzero(i)
xp.count_nonzero(m, axis=1); xp.count_nonzero(a, axis=(0, 1), keepdims=True); xp.ptp(a, axis=0); xp.average(a)
xp.average(a, axis=1, weights=w); xp.average(a, weights=a * a, returned=True); xp.average(i, axis=0, returned=True)
xp.cumsum(a); xp.cumsum(i, axis=0); xp.cumsum(m, axis=1); xp.cumprod(w); xp.cumprod(a, 1); xp.cumsum(h, axis=2)
xp.cumsum(z, 0); xp.cumulative_sum(v); xp.cumulative_sum(a, axis=1, include_initial=True)
xp.cumulative_prod(w, include_initial=True); xp.diff(v); xp.diff(a, axis=0); xp.diff(a, 2); xp.diff(m)
xp.diff(v, prepend=0.0, append=v[:2]); xp.diff(i, n=0); xp.ediff1d(a, 9.0, 8.0); xp.argmax(a); xp.argmax(i, axis=0)
xp.argmin(f); xp.argmax(f); xp.argmin(a, axis=1, keepdims=True); xp.argmax(m, -1); xp.sort(a); xp.sort(a, axis=0)
xp.sort(a, axis=None); xp.sort(f); xp.sort(u); xp.sort(c, axis=1); xp.sort(m); xp.sort(h, axis=1)
xp.argsort(k, kind='stable'); xp.argsort(a, axis=0); xp.argsort(f); xp.lexsort((k, k % 3)); xp.sort(z, axis=0)
xp.sort(xp.partition(k, 4)[:5]); xp.sort(k[xp.argpartition(k, 2)[:3]]); xp.nonzero(m); xp.nonzero(k - 1)
xp.flatnonzero(i); xp.argwhere(m); xp.argwhere(i > 2); xp.where(m); xp.nonzero(z); xp.where(m, a, i)
xp.where(m, a, 0.0); xp.where(m, 1, 2); xp.where(i, a, c); xp.where(b > 0, b, 1.5); xp.searchsorted(s, v)
xp.searchsorted(s, s, side='right'); xp.searchsorted(s, 0.1); xp.searchsorted(k, [4], sorter=xp.argsort(k))
xp.digitize(v, s); xp.digitize(v, s[::-1]); xp.digitize(v, s, right=True); xp.extract(m, a); xp.unique(k)
xp.unique(i); xp.unique(f); xp.unique(k, return_index=True, return_inverse=True, return_counts=True); xp.unique(z)
xp.unique(i, return_inverse=True); xp.unique(f, return_counts=True); xp.unique(f, equal_nan=False); xp.unique(c)
xp.unique(m); xp.unique_all(k); xp.unique_counts(i); xp.unique_inverse(i); xp.sort(xp.unique_values(u))
xp.isin(k, [1, 5]); xp.isin(i, p, invert=True); xp.intersect1d(k, p); xp.union1d(k, p); xp.setdiff1d(k, p)
xp.setxor1d(k, p); xp.isin(k, z); xp.bincount(k); xp.bincount(p, weights=w); xp.bincount(p, minlength=7)
xp.histogram(v, 5); xp.histogram(a, s); xp.histogram(k, 4, (1, 5)); xp.histogram(v, 4, density=True)
xp.histogram(v, 3, weights=v); xp.histogram(k, bins=[1, 2, 4], weights=k); xp.median(a); xp.median(a, axis=0)
xp.median(k); xp.median(n, axis=1); xp.median(f[:6]); xp.median(h, axis=(0, 1), keepdims=True); xp.percentile(a, 30)
xp.percentile(a, [10, 50, 99], axis=1); xp.quantile(v, 0.3); xp.quantile(n, 0.5, axis=0); xp.quantile(k, [0.0, 1.0])
xp.quantile(v, 0.37, method='lower'); xp.quantile(v, 0.37, method='higher'); xp.quantile(v, 0.37, method='nearest')
xp.quantile(v, 0.37, method='midpoint'); xp.percentile(t, 40, axis=(0, 2), keepdims=True); xp.nansum(n)
xp.nansum(n, axis=1); xp.nanprod(n, axis=0); xp.nanmax(n, axis=0); xp.nanmin(n); xp.nanmax(i); xp.nanmean(n, axis=0)
xp.nanmean(n); xp.nanvar(n, axis=0); xp.nanstd(n, ddof=1); xp.nanargmax(n, axis=0); xp.nanargmin(n[:2])
xp.nancumsum(n); xp.nancumprod(n, 1); xp.reshape(a, (2, 6)); xp.reshape(g, -1); xp.reshape(g, (3, 4), order='F')
xp.ravel(g); xp.ravel(g, 'F'); xp.ravel(r); xp.ravel(o); xp.transpose(t); xp.transpose(t, (1, -1, 0))
xp.permute_dims(t, (2, 0, 1)); xp.matrix_transpose(t); xp.swapaxes(t, 0, 2); xp.moveaxis(t, 0, -1)
xp.moveaxis(t, (0, 1), (-1, -2)); xp.rollaxis(t, 2); xp.rollaxis(t, 0, 3); xp.expand_dims(a, 1)
xp.expand_dims(a, (0, -1)); xp.squeeze(a[None, :, None]); xp.squeeze(a[None], 0); xp.atleast_1d(o)
xp.atleast_2d(v, o); xp.atleast_3d(o, v, a, t); xp.broadcast_to(b, (3, 4)); xp.broadcast_arrays(b, a)
xp.broadcast_shapes((3, 1), (4,), ()); xp.flip(a); xp.flip(t, (0, 2)); xp.fliplr(a); xp.flipud(a); xp.rot90(a)
xp.rot90(a, 2); xp.rot90(a, -1); xp.rot90(t, 1, (1, 2)); xp.roll(v, 2); xp.roll(a, (1, -2), (0, 1)); xp.roll(a, -5)
xp.roll(a, 1, axis=(0, 1)); xp.roll(z, 3, 1); xp.split(a, 2, axis=1); xp.array_split(v, 3); xp.split(v, [2, 2, 5])
xp.hsplit(a, 2); xp.vsplit(y, 2); xp.dsplit(t, [1]); xp.unstack(a, axis=1); xp.array_split(v, 9); xp.shape(a)
xp.ndim(a); xp.size(a, 1); xp.size(a); xp.concatenate([a, i]); xp.concatenate([a, b[None]], axis=0)
xp.concatenate([g, g], axis=1); xp.concatenate([a, y], axis=None)
xp.concat([m, u.reshape(2, 3)[:, :0].reshape(0, 4)], axis=0); xp.concatenate((z, d))
xp.concatenate([a, c], axis=1, dtype='complex64'); xp.stack([a, a + 1]); xp.stack([v, v], axis=1)
xp.stack([b, b], axis=-1); xp.hstack([v, v]); xp.hstack([a, a]); xp.vstack([v, v]); xp.dstack([a, a])
xp.column_stack([v, v]); xp.append(a, v); xp.repeat(a, 2); xp.repeat(a, 3, axis=1); xp.repeat(a, [0, 2, 1], axis=0)
xp.repeat(v, p[[0, 1, 1, 2, 3, 0, 0]]); xp.tile(v, 2); xp.tile(a, (2, 1, 3)); xp.tile(o, 3); xp.tile(a, ())
xp.resize(v, (3, 5)); xp.resize(z, (2,)); xp.delete(v, 2); xp.delete(a, [0, -1], 1); xp.delete(v, slice(1, None, 2))
xp.delete(a, p[:2], 0); xp.pad(a, 1); xp.pad(v, (2, 3), constant_values=7)
xp.pad(a, ((1, 0), (2, 1)), constant_values=((1, 2), (3, 4))); xp.pad(v, 3, 'edge'); xp.pad(v, (9, 4), 'reflect')
xp.pad(a, 5, 'symmetric'); xp.pad(a, ((0, 2), (3, 0)), 'wrap'); xp.pad(z, ((1, 0), (0, 0))); xp.take(a, p)
xp.take(a, [2, 0], axis=0); xp.take(a, -1, axis=1); xp.take(v, y); xp.take(v, [9, -9], mode='wrap')
xp.take(v, [99, -2], mode='clip'); xp.take_along_axis(a, xp.argsort(a, axis=1), axis=1)
xp.take_along_axis(a, p[None, :] % 3, 0); xp.take_along_axis(a, p, None); xp.compress([True, False, True], a, axis=0)
xp.compress(m.ravel(), a); xp.choose(p % 2, [w, w * 2]); xp.select([a > 0, a < -1], [a, i], 9)
xp.unravel_index(k, (4, 5)); xp.ravel_multi_index((p, p), (3, 4)); xp.ravel_multi_index((p, p), (3, 4), order='F')
xp.unravel_index(7, (3, 4), 'F'); a[xp.ix_(p[:2], p[1:3])]; xp.ix_(m[0], p[:1])
xp.apply_along_axis(lambda row: row.sum(), 1, a); xp.apply_along_axis(lambda row: row[::-1], 0, a); xp.diag(v, 1)
xp.diag(a); xp.diag(a, -1); xp.diagonal(t, 1, 0, 2); xp.diagonal(a, 7); xp.diagflat(y); xp.eye(3)
xp.eye(2, 4, k=1, dtype='int8'); xp.eye(3, k=-5); xp.identity(2); xp.tri(3, 4, 1); xp.tril(a); xp.triu(t, -1)
xp.tril(a, 1); xp.vander(w); xp.vander(p, 3, increasing=True); xp.meshgrid(v, p); xp.meshgrid(v, p, w, indexing='ij')
xp.meshgrid(v, p, sparse=True); xp.meshgrid(v); xp.indices((2, 3)); xp.indices((2, 3), sparse=True)
xp.mgrid[0:3, 1:7:2]; xp.mgrid[0:1:3j]; xp.ogrid[:2, :3]; xp.tril_indices(3); xp.triu_indices(3, 1, 4)
xp.diag_indices(3); xp.arange(5); xp.arange(2, 9, 3); xp.arange(5.0); xp.arange(1, 0, -0.25); xp.arange(3, dtype='f4')
xp.arange(5, 1); xp.arange(0, 1, 0.1); xp.arange(9, 0, -4); xp.arange(2, dtype=bool)
xp.arange(200, 300, 20, dtype='i2'); xp.linspace(0, 1, 7); xp.linspace(2, 3, 5, endpoint=False)
xp.linspace(0, 10, 4, dtype=int); xp.linspace(1, 2, 1); xp.linspace(0, 1, 0); xp.linspace(0, 1, 5, retstep=True)
xp.linspace(0, 1 + 1j, 3); xp.linspace(w, 1.0, 3); xp.linspace(0, w, 4, axis=1); xp.linspace(-1, 1, 5, dtype='f4')
xp.logspace(0, 2, 5); xp.geomspace(1, 256, 9); xp.geomspace(-1, -8, 4); xp.zeros((2, 3)); xp.zeros(4, int)
xp.ones((2,), 'f4'); xp.full((2, 2), 7); xp.full(3, 1.5, 'f4'); xp.full((2, 4), w); xp.full((), True); xp.full(2, 1j)
xp.zeros_like(g); xp.ones_like(i, dtype='f4'); xp.full_like(a, 3); xp.full_like(i, 2.7)
xp.zeros_like(a, shape=(2, 2)); xp.empty_like(z); xp.full_like(a, w); xp.array([1, 2, 3])
xp.array([[1, 2.5], [3, 4]]); xp.array([True, False]); xp.array(5); xp.array([]); xp.array([1, 2], 'f4')
xp.array([1, 2j]); xp.array(((1,), (2,))); xp.array([v, v]); xp.array([[v, v], [v, v]]); xp.array([v, [0.0] * 7])
xp.asarray(a); xp.asarray(a, dtype='f4'); xp.array(v, ndmin=3); xp.array(range(4)); xp.array([2**63])
xp.ascontiguousarray(r); xp.ascontiguousarray(o); xp.asfortranarray(a); xp.asanyarray(v); xp.copy(r)
xp.fromfunction(lambda x, y: x * y, (3, 2), dtype=int); xp.frombuffer(b'abcdefgh', 'i2')
xp.frombuffer(b'abcdefgh', 'u1', 3, 2); xp.fromiter((x * x for x in range(4)), 'i8'); xp.fromiter(range(9), float, 2)
xp.matmul(a, a.T); xp.matmul(a, w); xp.matmul(t, t.swapaxes(1, 2)); xp.matmul(i, i.T); xp.matmul(c, a.T)
xp.matmul(h, h[0].T); xp.dot(a, w); xp.dot(v, v); xp.dot(t, b); xp.dot(2, v); xp.vdot(c, c); xp.inner(a, b)
xp.inner(t, a); xp.outer(v, w); xp.kron(y, d); xp.kron(w, y); xp.vecdot(c, c); xp.vecdot(t, t, axis=1)
xp.tensordot(t, a, ([1, 2], [0, 1])); xp.tensordot(t, a.T, 1); xp.tensordot(v, w, 0); xp.trace(d); xp.trace(t)
xp.matmul(z, d); xp.matmul(m, m.T); xp.matmul(d[:, :0], z); xp.einsum('ij,kj->ik', a, d @ a); xp.einsum('ii', d)
xp.einsum('ii->i', d); xp.einsum('ij->ji', a); xp.einsum('ij->', a); xp.einsum('i,i', v, v)
xp.einsum('i,j->ij', v, w); xp.einsum('...ij,...jk', t, t.swapaxes(1, 2))
xp.einsum('bij,bjk->bik', t, t.swapaxes(1, 2)); xp.einsum('ij,jk,kl->il', d, d, d); xp.einsum('ij,ij->j', a, i)
xp.einsum('ba', a); xp.linalg.norm(v); xp.linalg.norm(a); xp.linalg.norm(a, axis=1); xp.linalg.norm(a, 1)
xp.linalg.norm(a, -1); xp.linalg.norm(a, inf); xp.linalg.norm(a, -inf); xp.linalg.norm(a, 'fro'); xp.linalg.norm(v, 1)
xp.linalg.norm(v, inf); xp.linalg.norm(v, -inf); xp.linalg.norm(v, 0); xp.linalg.norm(v, 3); xp.linalg.norm(i)
xp.linalg.norm(c, axis=0); xp.linalg.norm(h, axis=(0, 2), keepdims=True); xp.linalg.vector_norm(a)
xp.linalg.vector_norm(t, axis=(0, 2), ord=1); xp.linalg.matrix_norm(t); xp.linalg.matrix_norm(t, ord=1, keepdims=True)
xp.linalg.cross(d, d[::-1]); xp.linalg.matrix_power(d, 5); xp.linalg.matrix_power(d, 0); xp.linalg.matrix_power(y, 3)
xp.linalg.multi_dot([a, a.T, d, w[:3]]); xp.linalg.trace(t); xp.linalg.diagonal(t, offset=1); xp.linalg.outer(v, w)
xp.linalg.matmul(a, a.T); xp.linalg.tensordot(t, t, axes=3); xp.linalg.vecdot(a, a); xp.linalg.matrix_transpose(a)
xp.angle(c); xp.angle(c, deg=True); xp.real(c); xp.imag(c); xp.real(a); xp.imag(a); xp.real_if_close(c)
xp.real_if_close(c * 0); xp.round(a, 1); xp.round(f); xp.around(i); xp.round(c, 2); xp.fix(f); xp.clip(a, -0.5, 0.5)
xp.clip(i, 0, None); xp.clip(i, None, 2); xp.clip(f, -1, 1); xp.clip(a, b, 2.0); xp.clip(u, 10, 100); xp.nan_to_num(f)
xp.nan_to_num(n, nan=7.0); xp.nan_to_num(f, posinf=1.0, neginf=-1.0); xp.divmod(a, 0.3); xp.divmod(i, 3); xp.modf(f)
xp.modf(a); xp.fabs(i); xp.float_power(p, 2); xp.lcm(k, 6); xp.gcd(k, 6); xp.ldexp(v, p[[0, 1, 2, 3, 0, 0, 0]])
xp.logaddexp2(v, 1.0); xp.sinc(v); xp.sinc(0.0 * v); xp.degrees(v); xp.radians(v); xp.deg2rad(v); xp.rad2deg(v)
xp.interp(v, s, s * 2); xp.interp(v, s, s, -9.0, 9.0); xp.trapezoid(v); xp.trapezoid(a, axis=0, dx=0.5)
xp.trapezoid(v, s[:7]); xp.spacing(v); xp.isposinf(f); xp.isneginf(f); xp.isclose(f, f, equal_nan=True)
xp.isclose(a, a + 1e-9); xp.isclose(f, 1.5); xp.isclose(i, i + 1); xp.iscomplex(c); xp.isreal(c); xp.iscomplexobj(c)
xp.isrealobj(a); xp.isscalar(3); xp.array_equal(a, a); xp.array_equal(a, v); xp.array_equal(f, f)
xp.array_equal(f, f, equal_nan=True); xp.array_equiv(b, a * 0 + b); xp.array_equiv(a, v); xp.allclose(a, a + 1e-12)
xp.allclose(a, a + 1); xp.isfortran(g); xp.can_cast('i4', 'f8'); xp.can_cast('f8', 'i4')
xp.can_cast('f8', 'f4', 'same_kind'); xp.isdtype(xp.float32, 'real floating')
xp.isdtype(xp.int8, ('bool', 'integral')); xp.shares_memory(a, a[1:]); xp.add.reduce(a); xp.add.reduce(a, axis=None)
xp.multiply.reduce(w); xp.maximum.reduce(a, axis=1); xp.logical_or.reduce(m, axis=0); xp.add.accumulate(a, axis=1)
xp.multiply.accumulate(w); xp.subtract.outer(w, v); xp.minimum.reduce(i, axis=(0, 1))
"""

METHODS = """
a.sum(); a.sum(axis=1, keepdims=True); a.mean(0); a.var(ddof=1); a.std(); a.prod(); a.max(axis=0); a.min(); m.any()
m.all(axis=1); a.argmax(); a.argmin(axis=1); a.cumsum(); a.cumprod(axis=0); i.clip(-1, 2); a.clip(max=0.0); a.round(2)
c.conj(); a.conjugate(); c.real; c.imag; a.real; a.imag; a.T; t.mT; a.ptp() if hasattr(a, 'ptp') else xp.ptp(a)
a.reshape(4, 3); a.reshape((2, -1)); a.reshape(-1, order='F'); a.ravel(); a.flatten('F'); a.transpose()
t.transpose(2, 0, 1); t.transpose((1, 0, 2)); a.swapaxes(0, 1); a[None].squeeze(); a[None].squeeze(0); a.astype('f4')
a.astype(int); a.astype(bool); i.astype('u1'); c.astype('c8'); a.astype('f4', order='F'); a.copy(); a.copy(order='F')
g.astype('f8').copy('K'); a.tolist(); c.tolist(); m.tolist(); o.tolist(); z.tolist(); h.tolist(); a.item(0)
a.item(1, 2); a.item((0, -1)); o.item(); c.item(3); m.item(0); a.take([0, 5]); a.repeat(2, axis=0); a.diagonal()
d.trace(); a.nonzero(); k.argsort(kind='stable'); s.searchsorted(v); a.dot(w); a.compress([True, False, True], axis=0)
u.view('i1'); a.view('i8'); u.view('u2'); a.view('u1'); i.tobytes() == i.tobytes(); a.shape; a.strides; a.ndim; a.size
a.itemsize; a.nbytes; len(a); 3.0 in o; int(o); float(o); complex(o); bool(o); p[1].__index__(); f'{o:.3f}'
a.flags.c_contiguous; g.flags['F_CONTIGUOUS']; g.flags.fnc; a.T.flags.forc; r.flags.c_contiguous
a[:, :1].flags.c_contiguous; z.flags.c_contiguous; o.flags['C']; xp.broadcast_to(b, (2, 4)).flags.writeable
[x.sum() for x in a]; list(v)[2]; a @ a.T; a + b; a - 1; 1 - a; a * i; 2 ** p; a / 3; 1 / w; i // 3; 7 // (p + 1)
i % 3; -7 % (p + 1); i ** 2; -a; +a; abs(a); ~i; ~m; i & 3; i | 8; i ^ p; u << 1; k >> 1; 1 << p; divmod(i, 2); a < b
a <= 0; a > b; a >= 0; a == a; i != 0; m & (a > 0); m | True; m ^ m; u + 1; u - 1; u * 2; u + 1.0; u + 1j; b + 1
b + 1.0; b * 2j; i + 1.5; m + 1; m + 1.5; h + 1; h * 2.0; b + np.float64(1); b * np.float32(2); u + np.int16(3)
abs(c); c * 1j; c == c; c != 0; -c; c + a; c ** 2; f == f; f < 1; f // 1; f % 2; i // 0; i % 0; u // 0; f / 0
a.__contains__(99.0); m.sum(dtype='i4'); (a * 0 == 0).all()
"""


def rows(table):
    """The expressions of a table, each once; "; " divides those of a line."""
    return list(dict.fromkeys(part for line in table.strip().splitlines() for part in line.split("; ")))


@pytest.mark.parametrize("expression", rows(FUNCTIONS))
def test_function_as_numpy(expression, device):
    both(expression, device)


@pytest.mark.parametrize("expression", rows(METHODS))
def test_method_as_numpy(expression, device):
    both(expression, device)


# Statements that change arrays: after each, every array must be as NumPy's.
STATEMENTS = """
a += 1; a -= b; a *= 2; a /= 3; i //= 2; i %= 3; i **= 2; u <<= 1; k >>= 1; i &= 3; i |= 1; i ^= p; a @= np_eye
a[0] = 5; a[:, 1] = w[:3]; a[...] = b; a[m] = -1; a[[0, 2]] = 0; a[[0, 1], [1, 2]] = [7, 8]; a[::-1] = a
a[1:] = a[:-1]; a[:-1] = a[1:]; a[i > 0] *= 2; v[::2] += 10; o[...] = 3; o[()] = 4; d += d.T; d[:] = d.T
d[...] = d[::-1, ::-1]; v[1:] += v[:-1]; v[:-1] *= v[1:]; a[:, ::-1] += a; t[0] = t[1] + t[0]; t[:, 1] = 0; g += 1
r *= 2; c.real = 1; c.imag += a; c.real[0] = 9; a.fill(3); u.fill(7); a.sort(); a.sort(axis=0); k.sort(kind='stable')
g.sort(0); a.sort(-1); a.put([0, -1], [5, 6]); z[...] = 1; xp.fill_diagonal(a, 9); xp.fill_diagonal(d, w[:3])
xp.put(a, [0, 5], 3); xp.place(a, m, [1, 2]); xp.putmask(a, m, v[:2]); xp.copyto(a, b); xp.copyto(a, 5.0, where=m)
xp.put_along_axis(a, p[None, :3].T, 0, 1); xp.add.at(v, p, 1); xp.subtract.at(a, (p[:3], p[:3]), w[:3])
xp.add.at(k, [0, 0, 0], 5); xp.add(a, b, out=a); xp.add(a, 1, a); xp.sin(v, out=v); xp.sum(a, axis=0, out=w)
xp.max(a, axis=1, out=v[:3]); xp.matmul(d, d, out=d); xp.clip(a, 0, 1, out=a); xp.cumsum(v, out=v); xp.round(a, out=a)
xp.concatenate([v[:3], v[:4]], out=v); xp.multiply(i, 2, out=a); xp.mean(a, axis=0, out=w); xp.take(a, p, out=w)
xp.nan_to_num(n, copy=False); xp.stack([b, b, b], out=a)
"""


@pytest.mark.parametrize("statement", rows(STATEMENTS))
def test_statement_as_numpy(statement, device):
    theirs = {**inputs(), "np_eye": np.eye(4)}
    ours = on_device(theirs, device)
    theirs["r"] = theirs["r"][::-2, 1::2]
    with np.errstate(all="ignore"):
        exec(statement, {"xp": np, "np": np}, theirs)
        exec(statement, {"xp": nd, "np": np}, ours)
    for name, want in theirs.items():
        check(ours[name], want)


# Names whose tests are in the other files.
ELSEWHERE = """
AxisError CudaArray HostArray ndarray ufunc cuda linalg random dtype e euler_gamma inf nan newaxis pi asnumpy empty
from_dlpack fromDlpack get_array_module finfo iinfo common_type promote_types result_type astype array_repr
array_str array2string may_share_memory histogram_bin_edges RawKernel RawModule ElementwiseKernel ReductionKernel
fuse row_stack __array_namespace_info__
"""


def test_every_public_name_is_tested_here_or_is_a_ufunc():
    """A function that is added to the namespace needs a row above, or a test of its own that is named here."""
    source = FUNCTIONS + METHODS + STATEMENTS
    missing = [
        name
        for name in nd.__all__
        if name not in ELSEWHERE.split()
        and not isinstance(getattr(nd, name), (nd.ufunc, nd.dtype))
        and f"xp.{name}" not in source
    ]
    assert missing == []


def test_expressions_see_both_namespaces():
    assert evaluate("xp.pi", np, {}) == np.pi
