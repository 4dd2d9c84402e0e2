# dlbridge_build_flags: how our own sources are compiled. Nothing of it reaches a user of dlbridge::dlbridge.
include(CheckCXXCompilerFlag)
include(CheckIPOSupported)

add_library(dlbridge_build_flags INTERFACE)

if(DLBRIDGE_WARNINGS)
  target_compile_options(dlbridge_build_flags INTERFACE -Wall -Wextra -Wconversion -Wshadow -Werror)
endif()

# Every call into the interpreter would go through a PLT stub; a load from the GOT is one jump less on the hot path.
check_cxx_compiler_flag(-fno-plt dlbridge_has_no_plt)
if(dlbridge_has_no_plt)
  target_compile_options(dlbridge_build_flags INTERFACE $<$<CONFIG:Release>:-fno-plt>)
endif()

# Shapes and strides have a few numbers, in arrays that hold more: GCC copies and clears such by rep movs and rep stos,
# which take some 7 ns to begin. By loops a small reduction takes a fifth less.
set(dlbridge_small_copies -mmemcpy-strategy=unrolled_loop:512:noalign,libcall:-1:noalign
  -mmemset-strategy=vector_loop:512:noalign,libcall:-1:noalign)
check_cxx_compiler_flag("${dlbridge_small_copies}" dlbridge_has_small_copies)
if(dlbridge_has_small_copies)
  target_compile_options(dlbridge_build_flags INTERFACE $<$<CONFIG:Release>:${dlbridge_small_copies}>)
  target_link_options(dlbridge_build_flags INTERFACE $<$<CONFIG:Release>:${dlbridge_small_copies}>)
endif()

if(DLBRIDGE_SANITIZE)
  # -fno-sanitize-recover: a report must fail the test, not scroll by. -g1: all that a report names are functions and
  # lines, and the full -g takes a quarter of the time of a build.
  target_compile_options(dlbridge_build_flags INTERFACE
    -fsanitize=${DLBRIDGE_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -g1)
  target_link_options(dlbridge_build_flags INTERFACE -fsanitize=${DLBRIDGE_SANITIZE})
endif()

# The hot path crosses from protocols/ to python/src/: it needs inlining between sources. Sanitizers want none.
set(dlbridge_lto OFF)
if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT DLBRIDGE_SANITIZE)
  check_ipo_supported(RESULT dlbridge_lto OUTPUT dlbridge_lto_problem LANGUAGES CXX)
  if(NOT dlbridge_lto)
    message(STATUS "No link-time optimisation: ${dlbridge_lto_problem}")
  endif()
endif()

# dlbridge_unity(<target> <group> <sources>…): compiled as one source. Most of what a source of pybind11 costs is pybind11,
# parsed and instantiated again; half of what a small source costs is the standard library.
function(dlbridge_unity target group)
  if(DLBRIDGE_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    set_source_files_properties(${ARGN} PROPERTIES UNITY_GROUP ${group})
  endif()
endfunction()
