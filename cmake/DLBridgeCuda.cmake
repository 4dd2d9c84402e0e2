# Whether the CUDA kernels are built, and with which nvcc: dlbridge_build_cuda.
#
# nvcc is taken from CUDACXX, PATH, CUDA_HOME, /usr/local/cuda, or the wheels nvidia-cuda-nvcc and friends, which are a
# complete compiler under <site-packages>/nvidia/cu13. AUTO asks for a GPU driver too, so that nobody without a GPU waits
# for nvcc.
set(dlbridge_build_cuda OFF)
if(DLBRIDGE_CUDA STREQUAL "OFF")
  return()
endif()

set(dlbridge_nvcc_wheel "")
if(Python_EXECUTABLE)
  execute_process(
    COMMAND ${Python_EXECUTABLE} -c "import sys, os\nfor p in sys.path:\n  f = os.path.join(p, 'nvidia', 'cu13')\n  if os.path.exists(os.path.join(f, 'bin', 'nvcc')): print(f); break"
    OUTPUT_VARIABLE dlbridge_nvcc_wheel OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
find_program(dlbridge_nvcc nvcc HINTS $ENV{CUDACXX} ENV CUDA_HOME PATH_SUFFIXES bin
  PATHS /usr/local/cuda/bin ${dlbridge_nvcc_wheel}/bin)
find_library(dlbridge_driver NAMES libcuda.so.1 cuda PATHS /usr/lib/x86_64-linux-gnu /usr/local/nvidia/lib64 NO_CACHE)

if(DLBRIDGE_CUDA STREQUAL "AUTO" AND NOT (dlbridge_nvcc AND dlbridge_driver))
  message(STATUS "CUDA kernels: not built (nvcc: ${dlbridge_nvcc}; driver: ${dlbridge_driver}). DLBRIDGE_CUDA=ON forces them")
  return()
endif()
if(NOT dlbridge_nvcc)
  message(FATAL_ERROR "DLBRIDGE_CUDA=ON, and there is no nvcc: not in CUDACXX, PATH, CUDA_HOME or /usr/local/cuda, nor as a "
    "wheel. Run `pip install nvidia-cuda-nvcc nvidia-nvvm nvidia-cuda-crt nvidia-cuda-runtime nvidia-cuda-cccl`")
endif()

set(CMAKE_CUDA_COMPILER ${dlbridge_nvcc})
if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  if(dlbridge_driver)
    set(CMAKE_CUDA_ARCHITECTURES native)
  else()
    set(CMAKE_CUDA_ARCHITECTURES 90)  # machine code for Hopper, and PTX that the driver compiles for newer ones
  endif()
endif()
if(dlbridge_nvcc_wheel AND dlbridge_nvcc MATCHES "^${dlbridge_nvcc_wheel}")
  set(CMAKE_CUDA_FLAGS "${CMAKE_CUDA_FLAGS} -L${dlbridge_nvcc_wheel}/lib")
endif()
set(CMAKE_CUDA_STANDARD 20)
enable_language(CUDA)
set(dlbridge_build_cuda ON)
message(STATUS "CUDA kernels: ${dlbridge_nvcc} for ${CMAKE_CUDA_ARCHITECTURES}")
