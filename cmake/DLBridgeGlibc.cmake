# DLBRIDGE_GLIBC=2.28: the extension module and the CUDA kernels for machines with that glibc or a newer one, linked on a
# machine with a newer one. For wheels that are made outside a manylinux container (tools/build_wheels.py); inside, it stays empty.
#
# An undefined symbol gets the version that the library at link time calls its default: exp@GLIBC_2.29, although every
# glibc has exp@GLIBC_2.2.5, too. So the linker is shown, before the real libraries, some with the same names, which
# hold nothing but the versions of then. They are never loaded. What is missing below, auditwheel names.
# libstdc++ goes into the module: the compiler's is younger than those of that glibc's time. So does operator new: one
# that is preloaded does not reach the module.
set(DLBRIDGE_GLIBC "" CACHE STRING "Oldest glibc that what is built is for: 2.28, or empty for the one it is linked with")
set_property(CACHE DLBRIDGE_GLIBC PROPERTY STRINGS "" 2.28)

# What libc.so.6 holds since glibc 2.34 was theirs before, in the version of x86-64's first glibc.
# The second half of each is what CUDA's runtime asks for.
set(dlbridge_old_dl dladdr dlclose dlerror dlopen dlsym dlvsym)
set(dlbridge_old_pthread pthread_create pthread_detach pthread_getspecific pthread_join pthread_key_create
  __pthread_key_create pthread_key_delete pthread_mutex_trylock pthread_once pthread_setspecific
  pthread_condattr_setpshared pthread_kill pthread_mutexattr_destroy pthread_mutexattr_init pthread_mutexattr_setpshared
  pthread_mutexattr_settype pthread_rwlock_destroy pthread_rwlock_init pthread_rwlock_rdlock pthread_rwlock_timedrdlock
  pthread_rwlock_timedwrlock pthread_rwlock_tryrdlock pthread_rwlock_trywrlock pthread_rwlock_unlock
  pthread_rwlock_wrlock pthread_rwlockattr_destroy pthread_rwlockattr_init pthread_rwlockattr_setpshared
  pthread_spin_destroy pthread_spin_init pthread_spin_lock pthread_spin_trylock pthread_spin_unlock
  sem_destroy sem_init sem_post sem_timedwait sem_trywait sem_wait)
set(dlbridge_old_rt shm_open shm_unlink)
foreach(library dl pthread rt)
  list(TRANSFORM dlbridge_old_${library} APPEND "@GLIBC_2.2.5")
endforeach()
list(APPEND dlbridge_old_dl dlmopen@GLIBC_2.3.4)

# function@version for all of libm.so.6, each in its newest version that is not newer than DLBRIDGE_GLIBC.
function(dlbridge_find_old_m out)
  execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-file-name=libm.so.6
    OUTPUT_VARIABLE libm OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_READELF} -W --dyn-syms ${libm} OUTPUT_VARIABLE said COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX MATCHALL "FUNC +[A-Z]+ +DEFAULT +[0-9]+ [A-Za-z0-9_]+@+GLIBC_[0-9.]+" rows "${said}")
  foreach(row IN LISTS rows)
    string(REGEX MATCH "([A-Za-z0-9_]+)@+GLIBC_([0-9.]+)$" row "${row}")
    set(name ${CMAKE_MATCH_1})
    if(CMAKE_MATCH_2 VERSION_LESS_EQUAL DLBRIDGE_GLIBC AND NOT "${newest_${name}}" VERSION_GREATER CMAKE_MATCH_2)
      set(newest_${name} ${CMAKE_MATCH_2})
      list(APPEND names ${name})
    endif()
  endforeach()
  list(REMOVE_DUPLICATES names)
  foreach(name IN LISTS names)
    list(APPEND found ${name}@GLIBC_${newest_${name}})
  endforeach()
  set(${out} "${found}" PARENT_SCOPE)
endfunction()

# A lib<name>.so.<soversion> of nothing but the given function@version.
function(dlbridge_add_old_library name soversion)
  set(file ${CMAKE_CURRENT_BINARY_DIR}/old_glibc/${name})
  set(labels "")
  foreach(row IN LISTS ARGN)
    string(REGEX MATCH "(.+)@(.+)" row "${row}")
    string(APPEND labels "asm(\".globl ${CMAKE_MATCH_1}\\n.type ${CMAKE_MATCH_1}, @function\\n${CMAKE_MATCH_1}:\");\n")
    list(APPEND versions ${CMAKE_MATCH_2})
    list(APPEND exports_${CMAKE_MATCH_2} ${CMAKE_MATCH_1})
  endforeach()
  list(REMOVE_DUPLICATES versions)
  set(map "")
  foreach(version IN LISTS versions)
    list(JOIN exports_${version} "; " exports)
    string(APPEND map "${version} { ${exports}; };\n")
  endforeach()
  file(CONFIGURE OUTPUT ${file}.cpp CONTENT "@labels@" @ONLY)
  file(CONFIGURE OUTPUT ${file}.map CONTENT "@map@" @ONLY)
  add_library(dlbridge_old_${name} SHARED EXCLUDE_FROM_ALL ${file}.cpp)
  target_link_options(dlbridge_old_${name} PRIVATE -nostdlib -Wl,--version-script=${file}.map)
  set_target_properties(dlbridge_old_${name} PROPERTIES OUTPUT_NAME ${name} SOVERSION ${soversion}
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/old_glibc)
endfunction()

# dlbridge_link_for_glibc(<target> [rt]): with librt, too.
function(dlbridge_link_for_glibc target)
  if(NOT DLBRIDGE_GLIBC)
    return()
  endif()
  if(NOT DLBRIDGE_GLIBC STREQUAL "2.28" OR NOT CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    message(FATAL_ERROR "DLBRIDGE_GLIBC is '${DLBRIDGE_GLIBC}' on ${CMAKE_SYSTEM_PROCESSOR}; it can be 2.28, on x86_64. "
      "Leave it empty and build in the manylinux container of that glibc: `pipx run cibuildwheel`")
  endif()
  if(NOT TARGET dlbridge_old_m)  # for several targets
    dlbridge_find_old_m(dlbridge_old_m)
    dlbridge_add_old_library(m 6 ${dlbridge_old_m})
    dlbridge_add_old_library(dl 2 ${dlbridge_old_dl})
    dlbridge_add_old_library(pthread 0 ${dlbridge_old_pthread})
    dlbridge_add_old_library(rt 1 ${dlbridge_old_rt})
  endif()
  list(TRANSFORM ARGN PREPEND dlbridge_old_ OUTPUT_VARIABLE more)
  target_sources(${target} PRIVATE ${PROJECT_SOURCE_DIR}/cmake/old_glibc.cpp)
  # --no-as-needed: it is libstdc++.a, further behind, that needs them.
  target_link_libraries(${target} PRIVATE -Wl,--push-state,--no-as-needed dlbridge_old_m dlbridge_old_dl
    dlbridge_old_pthread ${more} -Wl,--pop-state)
  target_link_options(${target} PRIVATE -static-libstdc++)
  set_target_properties(${target} PROPERTIES BUILD_WITH_INSTALL_RPATH ON)  # nothing may load these libraries
endfunction()
