// Arrays as arguments and results of functions in Rust that Python calls: what dlbridge.h is for C, over the same table
// of the installed package (dlbridge/c_api.h says more of each function). No crate is needed and nothing is linked:
//
//     #[allow(dead_code)]
//     mod dlbridge { include!(concat!(env!("DLBRIDGE_INCLUDE"), "/dlbridge.rs")); }
//
// PyObject is that of any other crate: cast the pointers. Everything is called with the GIL held. None and null mean
// that a Python exception is set. Rust 1.63, edition 2021.

use std::os::raw::{c_char, c_int, c_void};

#[repr(C)]
pub struct PyObject {
    opaque: [u8; 0],
}

#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct DataType {
    pub code: u8,
    pub bits: u8,
    pub lanes: u16,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Device {
    pub device_type: i32,
    pub device_id: i32,
}

#[repr(C)]
pub struct DlTensor {
    pub data: *mut c_void,
    pub device: Device,
    pub ndim: i32,
    pub dtype: DataType,
    pub shape: *mut i64,
    pub strides: *mut i64,
    pub byte_offset: u64,
}

#[repr(C)]
pub struct Managed {
    pub version: [u32; 2],
    pub manager_ctx: *mut c_void,
    pub deleter: Option<unsafe extern "C" fn(*mut Managed)>,
    pub flags: u64,
    pub dl_tensor: DlTensor,
}

#[repr(C)]
pub struct Record {
    pub dl: DlTensor,
    pub flags: u64,
    pub size: i64,
    pub ready_handle: usize,
    pub ready_kind: u8,
    pub protocol: u8,
    holder: *mut PyObject,
}

/// What an argument has to be: `Need { dtype: f32::DTYPE, ndim: 1, ..ANY }`.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Need {
    pub dtype: DataType,
    pub device_type: i32, // 0: the CPU's memory
    pub ndim: i32,
    pub order: u8, // b'C', b'F'; 0: any strides
    pub writable: u8,
}
pub const ANY: Need =
    Need { dtype: DataType { code: 0, bits: 0, lanes: 0 }, device_type: 0, ndim: -1, order: 0, writable: 0 };

#[repr(C)]
pub struct Wanted {
    pub dtype: DataType,
    pub device_type: i32,
    pub order: u8,
}

#[repr(C)]
pub struct Table {
    size: u32,
    major: u32,
    minor: u32,
    reserved: u32,
    pub read: unsafe extern "C" fn(*mut PyObject, *mut Record, *mut i64, i32) -> c_int,
    pub adapt: unsafe extern "C" fn(*mut PyObject, *const Wanted) -> *mut PyObject,
    pub wrap: unsafe extern "C" fn(*mut Managed, u8, usize) -> *mut PyObject,
    pub convert: unsafe extern "C" fn(*mut PyObject, *const c_char) -> *mut PyObject,
    pub release: unsafe extern "C" fn(*mut PyObject),
    pub parse_stream: unsafe extern "C" fn(*mut PyObject, *mut isize) -> c_int,
    pub order: unsafe extern "C" fn(Device, u8, usize, usize, *mut c_char, usize) -> c_int,
    pub current_stream: unsafe extern "C" fn(i32) -> usize,
    pub raise: unsafe extern "C" fn(u8, *const c_char),
    pub type_name: unsafe extern "C" fn(*mut PyObject, *mut c_char, usize),
    pub convert_like: unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject,
    pub read_argument: unsafe extern "C" fn(
        *mut PyObject,
        *const Need,
        *const c_char,
        *const c_char,
        *mut Record,
        *mut i64,
        i32,
    ) -> c_int,
}
const MAJOR: u32 = 1;
const MINOR: u32 = 1;
const _: () = assert!(std::mem::size_of::<Table>() == 112 && std::mem::size_of::<Record>() == 88);
const _: () = assert!(std::mem::size_of::<Need>() == 16 && std::mem::size_of::<Managed>() == 80);

extern "C" {
    pub fn PyArg_ParseTuple(args: *mut PyObject, format: *const c_char, ...) -> c_int;
    fn PyModule_Create2(def: *mut ModuleDef, version: c_int) -> *mut PyObject;
    fn PyCapsule_Import(name: *const c_char, no_block: c_int) -> *mut c_void;
    fn PyErr_Format(exception: *mut PyObject, format: *const c_char, ...) -> *mut PyObject;
    static PyExc_ImportError: *mut PyObject;
}

/// The table; None with ImportError. Also good in a module's init function, so that it fails there.
pub fn api() -> Option<&'static Table> {
    unsafe {
        let table = PyCapsule_Import(b"dlbridge._core._c_api\0".as_ptr().cast(), 0).cast::<Table>().as_ref()?;
        if table.major == MAJOR && table.size as usize >= std::mem::size_of::<Table>() {
            return Some(table);
        }
        PyErr_Format(
            PyExc_ImportError,
            b"this extension module was compiled for version %u.%u of dlbridge's C ABI, and the installed dlbridge has \
              %u.%u. Build the module again, or install a matching dlbridge\0".as_ptr().cast(),
            MAJOR, MINOR, table.major, table.minor,
        );
        None
    }
}

pub trait Element: Copy + 'static {
    const DTYPE: DataType;
}
macro_rules! elements {
    ($($t:ty, $code:expr);*) => {$(
        impl Element for $t {
            const DTYPE: DataType = DataType { code: $code, bits: 8 * std::mem::size_of::<$t>() as u8, lanes: 1 };
        }
    )*};
}
elements!(i8, 0; i16, 0; i32, 0; i64, 0; u8, 1; u16, 1; u32, 1; u64, 1; f32, 2; f64, 2);

/// An argument, as it was read: it keeps the memory until it is dropped, which needs the GIL, too.
pub struct Array {
    record: Record,
    table: &'static Table,
    _dims: Box<[i64; 16]>, // where the extents and strides may be
}

impl Array {
    /// Any framework's array, without a copy. Errors begin with "function(): argument 'argument': "; both end in \0. A
    /// capsule counts as read even where it does not fit.
    ///
    /// # Safety
    /// `object` is a Python object.
    pub unsafe fn get(object: *mut PyObject, function: &str, argument: &str, need: &Need) -> Option<Array> {
        assert!(function.ends_with('\0') && argument.ends_with('\0'));
        let table = api()?;
        let mut dims = Box::new([0; 16]);
        let mut record = std::mem::MaybeUninit::<Record>::uninit();
        let (f, a) = (function.as_ptr().cast(), argument.as_ptr().cast());
        match (table.read_argument)(object, need, f, a, record.as_mut_ptr(), dims.as_mut_ptr(), 8) {
            0 => Some(Array { record: record.assume_init(), table, _dims: dims }),
            _ => None,
        }
    }
    pub fn record(&self) -> &Record {
        &self.record
    }
    pub fn shape(&self) -> &[i64] {
        self.dims(self.record.dl.shape)
    }
    /// In elements.
    pub fn strides(&self) -> &[i64] {
        self.dims(self.record.dl.strides)
    }
    /// The first element. Memory of a device is to be waited for: `table.order`.
    pub fn data<T: Element>(&self) -> *mut T {
        assert!(self.record.dl.dtype == T::DTYPE);
        (self.record.dl.data as usize + self.record.dl.byte_offset as usize) as *mut T
    }
    fn dims(&self, first: *const i64) -> &[i64] {
        match self.record.dl.ndim {
            0 => &[],
            n => unsafe { std::slice::from_raw_parts(first, n as usize) },
        }
    }
}
impl Drop for Array {
    fn drop(&mut self) {
        unsafe { (self.table.release)(self.record.holder) }
    }
}

struct Kept<T> {
    managed: Managed,
    dims: Vec<i64>,
    _values: Vec<T>,
}
unsafe extern "C" fn free_kept<T>(managed: *mut Managed) {
    drop(Box::from_raw((*managed).manager_ctx.cast::<Kept<T>>()));
}

/// `values`, in C order, as an array of the framework of `example`, an argument as it was given: torch for torch. Null
/// on failure.
///
/// # Safety
/// `example` is a Python object.
pub unsafe fn like<T: Element>(values: Vec<T>, shape: &[i64], example: *mut PyObject) -> *mut PyObject {
    wrapped(values, shape, |table, tensor| (table.convert_like)(tensor, example))
}
/// The same in the framework that dlbridge.convert() knows by that name, which ends in \0.
pub fn named<T: Element>(values: Vec<T>, shape: &[i64], framework: &str) -> *mut PyObject {
    assert!(framework.ends_with('\0'));
    wrapped(values, shape, |table, tensor| unsafe { (table.convert)(tensor, framework.as_ptr().cast()) })
}

fn wrapped<T: Element>(
    mut values: Vec<T>,
    shape: &[i64],
    convert: impl FnOnce(&Table, *mut PyObject) -> *mut PyObject,
) -> *mut PyObject {
    assert!(values.len() as i64 == shape.iter().product::<i64>(), "as many values as the shape says");
    let table = match api() {
        Some(table) => table,
        None => return std::ptr::null_mut(),
    };
    let mut dims = shape.to_vec();
    for i in 0..shape.len() {
        dims.push(shape[i + 1..].iter().map(|&n| n.max(1)).product());
    }
    let dl_tensor = DlTensor {
        data: values.as_mut_ptr().cast(),
        device: Device { device_type: 1, device_id: 0 },
        ndim: shape.len() as i32,
        dtype: T::DTYPE,
        shape: dims.as_mut_ptr(),
        strides: dims[shape.len()..].as_mut_ptr(),
        byte_offset: 0,
    };
    let managed = Managed {
        version: [1, 3],
        manager_ctx: std::ptr::null_mut(),
        deleter: Some(free_kept::<T>),
        flags: 0,
        dl_tensor,
    };
    let kept = Box::into_raw(Box::new(Kept { managed, dims, _values: values }));
    unsafe {
        (*kept).managed.manager_ctx = kept.cast();
        let tensor = (table.wrap)(&mut (*kept).managed, 0, 0); // takes it, always
        if tensor.is_null() {
            return tensor;
        }
        let out = convert(table, tensor);
        (table.release)(tensor);
        out
    }
}

/// What Python calls: with the module, and with a tuple of the arguments.
pub type Function = unsafe extern "C" fn(*mut PyObject, *mut PyObject) -> *mut PyObject;

#[repr(C)]
struct MethodDef(*const c_char, Option<Function>, c_int, *const c_char);
#[repr(C)] // of CPython with a GIL: reference count, type, init, index, copy; name, doc, size, methods; …
struct ModuleDef([usize; 5], *const c_char, *const c_char, isize, *mut MethodDef, [usize; 4]);

/// The module that PyInit_… returns, for those who have no crate that makes it: the name, the function and the docstring
/// of each function. All texts end in \0. Null with ImportError where the installed dlbridge does not fit.
pub fn module(name: &'static str, functions: &[(&'static str, Function, &'static str)]) -> *mut PyObject {
    fn text(one: &'static str) -> *const c_char {
        assert!(one.ends_with('\0'));
        one.as_ptr().cast()
    }
    if api().is_none() {
        return std::ptr::null_mut();
    }
    let named = functions.iter().map(|&(name, function, doc)| MethodDef(text(name), Some(function), 1, text(doc)));
    let end = MethodDef(std::ptr::null(), None, 0, std::ptr::null());
    // CPython keeps both as long as the process lasts.
    let methods = Box::leak(named.chain([end]).collect::<Box<[_]>>()).as_mut_ptr();
    let def = ModuleDef([1, 0, 0, 0, 0], text(name), std::ptr::null(), -1, methods, [0; 4]);
    unsafe { PyModule_Create2(Box::leak(Box::new(def)), 1013) }
}
