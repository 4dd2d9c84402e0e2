# The frameworks that the converters are tested and measured with, each optional: dlbridge_framework_<name>, an INTERFACE
# target, where it is found; else dlbridge_missing_<name> says what would bring it.
#
# Debian has libeigen3-dev libarmadillo-dev libxtensor-dev libopencv-core-dev libtrilinos-kokkos-dev; libtorch, Arrow,
# ONNX Runtime, CCCL and RMM are in PyPI packages (torch pyarrow onnxruntime nvidia-cuda-cccl librmm-cu13), looked for in this interpreter:
set(DLBRIDGE_FRAMEWORKS_PYTHON "" CACHE FILEPATH "A Python that has torch, pyarrow, onnxruntime, …; empty: Python_EXECUTABLE")
set(frameworks_python "${DLBRIDGE_FRAMEWORKS_PYTHON}")
if(NOT frameworks_python)
  find_package(Python COMPONENTS Interpreter QUIET)
  set(frameworks_python "${Python_EXECUTABLE}")
endif()

# The folders of importable packages, found without importing them; "-" where there is none.
function(dlbridge_python_packages)
  set(found "")
  if(frameworks_python)
    string(JOIN "', '" names ${ARGN})
    execute_process(COMMAND ${frameworks_python} -c "
import importlib.util as u
for name in ('${names}',):
    s = u.find_spec(name)
    print(list(s.submodule_search_locations)[0] if s else '-')"
      OUTPUT_VARIABLE found OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
    string(REPLACE "\n" ";" found "${found}")
  endif()
  foreach(name folder IN ZIP_LISTS ARGN found)
    set(${name}_folder "${folder}" PARENT_SCOPE)
  endforeach()
endfunction()
dlbridge_python_packages(torch pyarrow onnxruntime nvidia librmm rapids_logger)

# INCLUDES are system folders; LIBRARIES full paths. Found where all of both exist; else MISSING says why.
function(dlbridge_framework name)
  cmake_parse_arguments(arg "" "MISSING" "INCLUDES;LIBRARIES;DEFINITIONS" ${ARGN})
  foreach(path IN LISTS arg_INCLUDES arg_LIBRARIES)
    if(NOT EXISTS "${path}")
      set(dlbridge_missing_${name} "${arg_MISSING}" PARENT_SCOPE)
      return()
    endif()
  endforeach()
  add_library(dlbridge_framework_${name} INTERFACE)
  target_include_directories(dlbridge_framework_${name} SYSTEM INTERFACE ${arg_INCLUDES})
  target_compile_definitions(dlbridge_framework_${name} INTERFACE ${arg_DEFINITIONS})
  target_link_libraries(dlbridge_framework_${name} INTERFACE ${arg_LIBRARIES})
  foreach(library IN LISTS arg_LIBRARIES)
    get_filename_component(folder ${library} DIRECTORY)
    target_link_options(dlbridge_framework_${name} INTERFACE -Wl,-rpath,${folder})
  endforeach()
endfunction()

find_path(DLBRIDGE_EIGEN_INCLUDE Eigen/Core PATH_SUFFIXES eigen3)
dlbridge_framework(eigen INCLUDES ${DLBRIDGE_EIGEN_INCLUDE} MISSING "no Eigen: apt-get install libeigen3-dev")

# Its headers alone: nothing here asks for the libraries that they can call.
find_path(DLBRIDGE_ARMADILLO_INCLUDE armadillo_bits/Mat_bones.hpp)
dlbridge_framework(armadillo INCLUDES ${DLBRIDGE_ARMADILLO_INCLUDE}
  DEFINITIONS ARMA_DONT_USE_WRAPPER ARMA_DONT_USE_LAPACK ARMA_DONT_USE_BLAS ARMA_DONT_USE_ARPACK ARMA_DONT_USE_SUPERLU
  MISSING "no Armadillo: apt-get install libarmadillo-dev")

find_path(DLBRIDGE_XTENSOR_INCLUDE NAMES xtensor/xtensor.hpp xtensor/containers/xtensor.hpp)
dlbridge_framework(xtensor INCLUDES ${DLBRIDGE_XTENSOR_INCLUDE} MISSING "no xtensor: apt-get install libxtensor-dev")

# Not find_package(OpenCV): Debian's configuration wants every module's library, and only core is needed.
find_path(DLBRIDGE_OPENCV_INCLUDE opencv2/core.hpp PATH_SUFFIXES opencv4 opencv5)
find_library(DLBRIDGE_OPENCV_CORE opencv_core)
dlbridge_framework(opencv INCLUDES ${DLBRIDGE_OPENCV_INCLUDE} LIBRARIES ${DLBRIDGE_OPENCV_CORE}
  MISSING "no OpenCV: apt-get install libopencv-core-dev")

find_path(DLBRIDGE_KOKKOS_INCLUDE Kokkos_Core.hpp PATH_SUFFIXES trilinos kokkos)
find_library(DLBRIDGE_KOKKOS_CORE NAMES kokkoscore trilinos_kokkoscore)
dlbridge_framework(kokkos INCLUDES ${DLBRIDGE_KOKKOS_INCLUDE} LIBRARIES ${DLBRIDGE_KOKKOS_CORE}
  MISSING "no Kokkos: apt-get install libtrilinos-kokkos-dev")

dlbridge_framework(torch INCLUDES ${torch_folder}/include
  LIBRARIES ${torch_folder}/lib/libtorch_cpu.so ${torch_folder}/lib/libc10.so
  MISSING "no libtorch: pip install torch, and -DDLBRIDGE_FRAMEWORKS_PYTHON=")

file(GLOB arrow_library "${pyarrow_folder}/libarrow.so.*")
list(APPEND arrow_library none)
list(GET arrow_library 0 arrow_library)
dlbridge_framework(arrow INCLUDES ${pyarrow_folder}/include LIBRARIES ${arrow_library}
  MISSING "no Arrow C++: pip install pyarrow, and -DDLBRIDGE_FRAMEWORKS_PYTHON=")

# The wheel has the library and no headers: where none are installed, the few declarations of tests/cpp/fakes. The
# library calls itself libonnxruntime.so.1, a name that the wheel does not hold: a link of that name is what is found.
file(GLOB onnxruntime_library "${onnxruntime_folder}/capi/libonnxruntime.so.*")
set(onnxruntime_link none)
if(onnxruntime_library)
  string(REGEX MATCH "libonnxruntime\\.so\\.[0-9]+" onnxruntime_soname "${onnxruntime_library}")
  set(onnxruntime_link ${PROJECT_BINARY_DIR}/onnxruntime/${onnxruntime_soname})
  file(MAKE_DIRECTORY ${PROJECT_BINARY_DIR}/onnxruntime)
  file(CREATE_LINK ${onnxruntime_library} ${onnxruntime_link} SYMBOLIC)
endif()
find_path(DLBRIDGE_ONNXRUNTIME_INCLUDE onnxruntime_cxx_api.h PATH_SUFFIXES onnxruntime onnxruntime/core/session)
if(NOT DLBRIDGE_ONNXRUNTIME_INCLUDE)
  set(DLBRIDGE_ONNXRUNTIME_INCLUDE ${PROJECT_SOURCE_DIR}/tests/cpp/fakes/onnxruntime)
endif()
dlbridge_framework(onnxruntime INCLUDES ${DLBRIDGE_ONNXRUNTIME_INCLUDE} LIBRARIES ${onnxruntime_link}
  MISSING "no libonnxruntime: pip install onnxruntime, and -DDLBRIDGE_FRAMEWORKS_PYTHON=")

# CCCL: of the PyPI package, or of a toolkit. Its host parts need no toolkit.
find_path(DLBRIDGE_CCCL_INCLUDE cuda/std/mdspan PATHS ${nvidia_folder}/cu13/include/cccl /usr/local/cuda/include/cccl)
dlbridge_framework(cccl INCLUDES ${DLBRIDGE_CCCL_INCLUDE} MISSING "no CCCL: pip install nvidia-cuda-cccl"
  DEFINITIONS THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP)

find_path(DLBRIDGE_CUDA_RUNTIME_INCLUDE cuda_runtime_api.h PATHS ${nvidia_folder}/cu13/include /usr/local/cuda/include)
find_library(DLBRIDGE_CUDART NAMES cudart libcudart.so.13 PATHS ${nvidia_folder}/cu13/lib /usr/local/cuda/lib64)
dlbridge_framework(rmm
  INCLUDES ${librmm_folder}/include ${rapids_logger_folder}/include ${DLBRIDGE_CCCL_INCLUDE} ${DLBRIDGE_CUDA_RUNTIME_INCLUDE}
  LIBRARIES ${librmm_folder}/lib64/librmm.so ${rapids_logger_folder}/lib64/librapids_logger.so ${DLBRIDGE_CUDART}
  DEFINITIONS THRUST_DEVICE_SYSTEM=THRUST_DEVICE_SYSTEM_CPP
  MISSING "needs RMM and CUDA's runtime: pip install librmm-cu13 nvidia-cuda-cccl nvidia-cuda-runtime")

# NCCL's header asks for CUDA's runtime; nothing here links the library.
find_path(DLBRIDGE_NCCL_INCLUDE nccl.h PATHS ${nvidia_folder}/nccl/include /usr/local/cuda/include)
if(DLBRIDGE_NCCL_INCLUDE AND DLBRIDGE_CUDA_RUNTIME_INCLUDE)
  dlbridge_framework(nccl INCLUDES ${DLBRIDGE_NCCL_INCLUDE} ${DLBRIDGE_CUDA_RUNTIME_INCLUDE})
else()
  dlbridge_framework(nccl INCLUDES ${PROJECT_SOURCE_DIR}/tests/cpp/fakes/nccl)
endif()
