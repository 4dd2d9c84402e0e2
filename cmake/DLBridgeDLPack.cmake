# Finds dlpack.h >= 1.3, which is not committed, and sets dlbridge_dlpack_include to a folder that holds it alone:
# the folder it was found in may hold headers of its package that ours must not see.
#   1. DLBRIDGE_DLPACK_INCLUDE, when given;
#   2. an installed dlpack package (CMake config, or a header on the system path), when new enough;
#   3. the PyPI package apache-tvm-ffi, a build requirement in pyproject.toml, which ships the header.
set(DLBRIDGE_DLPACK_INCLUDE "" CACHE PATH "Folder that holds dlpack/dlpack.h; empty: search")

# "major.minor" of the header, or empty where the file is missing or of the time before DLPACK_MAJOR_VERSION.
function(dlbridge_read_dlpack_version header out)
  set(${out} "" PARENT_SCOPE)
  if(EXISTS "${header}")
    file(STRINGS "${header}" lines REGEX "^#define DLPACK_(MAJOR|MINOR)_VERSION [0-9]+")
    if("${lines}" MATCHES "MAJOR_VERSION ([0-9]+).*MINOR_VERSION ([0-9]+)")
      set(${out} "${CMAKE_MATCH_1}.${CMAKE_MATCH_2}" PARENT_SCOPE)
    endif()
  endif()
endfunction()

function(dlbridge_find_dlpack out)
  set(candidates "")
  if(DLBRIDGE_DLPACK_INCLUDE)
    list(APPEND candidates "${DLBRIDGE_DLPACK_INCLUDE}")
  else()
    find_package(dlpack CONFIG QUIET)
    if(TARGET dlpack::dlpack)
      get_target_property(package_include dlpack::dlpack INTERFACE_INCLUDE_DIRECTORIES)
      list(APPEND candidates ${package_include})
    endif()
    find_path(DLBRIDGE_SYSTEM_DLPACK dlpack/dlpack.h)
    mark_as_advanced(DLBRIDGE_SYSTEM_DLPACK)
    if(DLBRIDGE_SYSTEM_DLPACK)
      list(APPEND candidates "${DLBRIDGE_SYSTEM_DLPACK}")
    endif()
    find_package(Python 3.10 COMPONENTS Interpreter QUIET)
    if(Python_Interpreter_FOUND)
      # find_spec: the package is located, not imported (its import loads a library that nobody needs here).
      execute_process(
        COMMAND ${Python_EXECUTABLE} -c "import importlib.util as u, pathlib as p; s = u.find_spec('tvm_ffi'); print(p.Path(s.origin).parent / 'include' if s else '', end='')"
        OUTPUT_VARIABLE tvm_ffi_include)
      if(tvm_ffi_include)
        list(APPEND candidates "${tvm_ffi_include}")
      endif()
    endif()
  endif()
  set(seen "")
  foreach(folder IN LISTS candidates)
    dlbridge_read_dlpack_version("${folder}/dlpack/dlpack.h" version)
    if(version VERSION_GREATER_EQUAL 1.3 AND version VERSION_LESS 2)
      message(STATUS "dlpack.h ${version}: ${folder}")
      set(${out} "${folder}" PARENT_SCOPE)
      return()
    endif()
    string(APPEND seen "\n  ${folder}: version '${version}'")
  endforeach()
  message(FATAL_ERROR "dlbridge needs dlpack.h 1.3 or a newer 1.x. Looked at:${seen}\n"
    "Install the build requirement `pip install apache-tvm-ffi` (and pass -DPython_EXECUTABLE=), "
    "or pass -DDLBRIDGE_DLPACK_INCLUDE=<folder that holds dlpack/dlpack.h>")
endfunction()

dlbridge_find_dlpack(dlbridge_dlpack_source)
set(dlbridge_dlpack_include ${CMAKE_CURRENT_BINARY_DIR}/dlpack_include)
configure_file(${dlbridge_dlpack_source}/dlpack/dlpack.h ${dlbridge_dlpack_include}/dlpack/dlpack.h COPYONLY)
