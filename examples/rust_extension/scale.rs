//! scale.scaled(a, by): the rows of any framework's array, multiplied; a new array of the same framework.
#![crate_type = "cdylib"]

#[allow(dead_code)]
mod dlbridge {
    include!(concat!(env!("DLBRIDGE_INCLUDE"), "/dlbridge.rs"));
}
use dlbridge::{Array, Element, Need, PyArg_ParseTuple, PyObject, ANY};
use std::ptr::null_mut;

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

#[no_mangle]
pub extern "C" fn PyInit_scale() -> *mut PyObject {
    dlbridge::module("scale\0", &[("scaled\0", scaled, "scaled(a, by)\0")])
}
