//! scale.scaled(a, by): the rows of any framework's array, multiplied; a new array of the same framework.
#![crate_type = "cdylib"]

#[allow(dead_code)]
mod dlbridge {
    include!(concat!(env!("DLBRIDGE_INCLUDE"), "/dlbridge.rs"));
}
use dlbridge::{Array, Element, Need, PyObject, ANY};
use std::os::raw::{c_char, c_int};
use std::ptr::{addr_of, addr_of_mut, null, null_mut};

unsafe extern "C" fn scaled(_module: *mut PyObject, args: *mut PyObject) -> *mut PyObject {
    let (mut given, mut by) = (null_mut(), 0f64);
    if PyArg_ParseTuple(args, b"Od\0".as_ptr().cast(), &mut given, &mut by) == 0 {
        return null_mut();
    }
    let a = match Array::get(given, "scaled\0", "a\0", &Need { dtype: f32::DTYPE, ndim: 1, ..ANY }) {
        Some(a) => a,
        None => return null_mut(),
    };
    let (from, stride) = (a.data::<f32>(), a.strides()[0] as isize);
    let out = (0..a.shape()[0] as isize).map(|i| (by * f64::from(*from.offset(i * stride))) as f32).collect();
    dlbridge::like(out, a.shape(), given)
}

// What every extension module needs of CPython; a crate like pyo3 has it ready.
extern "C" {
    fn PyArg_ParseTuple(args: *mut PyObject, format: *const c_char, ...) -> c_int;
    fn PyModule_Create2(def: *mut ModuleDef, version: c_int) -> *mut PyObject;
}
type Function = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;
#[repr(C)]
struct MethodDef(*const c_char, Option<Function>, c_int, *const c_char);
#[repr(C)] // of CPython with a GIL: reference count, type, init, index, copy; name, doc, size, methods; …
struct ModuleDef([usize; 5], *const c_char, *const c_char, isize, *mut MethodDef, [usize; 4]);

static mut METHODS: [MethodDef; 2] = [
    MethodDef(b"scaled\0".as_ptr().cast(), Some(scaled), 1, b"scaled(a, by)\0".as_ptr().cast()),
    MethodDef(null(), None, 0, null()),
];
static mut MODULE: ModuleDef =
    ModuleDef([1, 0, 0, 0, 0], b"scale\0".as_ptr().cast(), null(), -1, addr_of!(METHODS) as *mut _, [0; 4]);

#[no_mangle]
pub unsafe extern "C" fn PyInit_scale() -> *mut PyObject {
    if dlbridge::api().is_none() {
        return null_mut();
    }
    PyModule_Create2(addr_of_mut!(MODULE), 1013)
}
