# dlbridge._core, the extension module: the readers and exporters of protocols/, the table of
# frameworks/ and the binding code of python/src/.

# NumPy: for the layout of its C structs only; the module reads them when somebody else has loaded NumPy.
if(Python_NumPy_VERSION VERSION_LESS 2)
  message(FATAL_ERROR "dlbridge builds with the headers of NumPy >= 2, which also describe NumPy 1.x at run time; "
    "found ${Python_NumPy_VERSION}. Run `pip install 'numpy>=2'` first")
endif()
if(NOT pybind11_DIR)
  execute_process(COMMAND ${Python_EXECUTABLE} -m pybind11 --cmakedir
    OUTPUT_VARIABLE pybind11_DIR OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
# 3: multi-phase initialisation and free-threading support without switches.
find_package(pybind11 3 CONFIG REQUIRED)

file(GLOB dlbridge_python_sources CONFIGURE_DEPENDS
  ${CMAKE_CURRENT_SOURCE_DIR}/python/src/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/python/src/*/*.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/python/src/nd/*/*.cpp
  ${CMAKE_CURRENT_SOURCE_DIR}/protocols/*/*.cpp ${CMAKE_CURRENT_SOURCE_DIR}/frameworks/*.cpp)
# NO_EXTRAS: pybind11 would choose link-time optimisation and stripping by itself; DLBridgeFlags decides here.
pybind11_add_module(_core MODULE NO_EXTRAS ${dlbridge_python_sources})
target_include_directories(_core PRIVATE ${CMAKE_CURRENT_SOURCE_DIR})  # "protocols/…", "python/src/…"
target_link_libraries(_core PRIVATE dlbridge_nd dlbridge_nd_host_kernels dlbridge::dlbridge dlbridge_build_flags Python::NumPy ${CMAKE_DL_LIBS})
set_target_properties(_core PROPERTIES INTERPROCEDURAL_OPTIMIZATION ${dlbridge_lto})
# What Python calls is all that others see: a function with target_clones is exported although it is hidden.
file(CONFIGURE OUTPUT exported.map CONTENT "{ global: PyInit__core; local: *; };\n")
target_link_options(_core PRIVATE -Wl,--version-script=${CMAKE_CURRENT_BINARY_DIR}/exported.map)
dlbridge_link_for_glibc(_core)

# Two groups for two cores.
file(GLOB dlbridge_runtime_binding ${CMAKE_CURRENT_SOURCE_DIR}/python/src/nd/runtime/*.cpp)
dlbridge_unity(_core runtime ${dlbridge_runtime_binding})
set(dlbridge_other_binding ${dlbridge_python_sources})
list(FILTER dlbridge_other_binding INCLUDE REGEX
  "python/src/(diagnosis|dtype_device|module|nd/(creation|module|kernels/.*))\\.cpp$")
dlbridge_unity(_core binding ${dlbridge_other_binding})

if(SKBUILD)
  install(TARGETS _core LIBRARY DESTINATION dlbridge)
endif()
