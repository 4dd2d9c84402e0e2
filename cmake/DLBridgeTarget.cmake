# dlbridge::dlbridge, the header-only SDK, dlbridge::pybind11, dlbridge::nanobind, and their installation: inside the
# package folder of a wheel, or under a prefix by a plain `cmake --install`. The build folder is a package, too:
# -Ddlbridge_DIR=<build>.
include(CMakePackageConfigHelpers)

add_library(dlbridge INTERFACE)
add_library(dlbridge::dlbridge ALIAS dlbridge)
target_compile_features(dlbridge INTERFACE cxx_std_20)

# For projects that have this one as a subfolder; packages get theirs from dlbridgeConfig.cmake.
foreach(library IN ITEMS pybind11 nanobind)
  add_library(dlbridge_${library} INTERFACE)
  add_library(dlbridge::${library} ALIAS dlbridge_${library})
endforeach()
target_link_libraries(dlbridge_pybind11 INTERFACE dlbridge pybind11::headers)
target_link_libraries(dlbridge_nanobind INTERFACE dlbridge)  # nanobind_add_module() brings nanobind's headers

if(SKBUILD)
  set(dlbridge_include_dir dlbridge/include)
  set(dlbridge_cmake_dir dlbridge/cmake)
  set(dlbridge_pkgconfig_dir dlbridge/pkgconfig)
  set(dlbridge_pc_to_include ../include)
else()
  set(dlbridge_include_dir include)
  set(dlbridge_cmake_dir lib/cmake/dlbridge)
  set(dlbridge_pkgconfig_dir share/pkgconfig)
  set(dlbridge_pc_to_include ../../include)
endif()

target_include_directories(dlbridge INTERFACE
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/bridge/include>
  $<BUILD_INTERFACE:${dlbridge_dlpack_include}>
  $<INSTALL_INTERFACE:${dlbridge_include_dir}>)

# The dlpack.h of this build goes along: with another one the extension and its user could disagree about structs.
install(DIRECTORY bridge/include/ ${dlbridge_dlpack_include}/ DESTINATION ${dlbridge_include_dir}
  FILES_MATCHING PATTERN "*.h" PATTERN "*.rs")
install(TARGETS dlbridge EXPORT dlbridge)
install(EXPORT dlbridge FILE dlbridgeTargets.cmake NAMESPACE dlbridge:: DESTINATION ${dlbridge_cmake_dir})
export(EXPORT dlbridge FILE dlbridgeTargets.cmake NAMESPACE dlbridge::)

configure_package_config_file(cmake/dlbridgeConfig.cmake.in ${CMAKE_CURRENT_BINARY_DIR}/dlbridgeConfig.cmake
  INSTALL_DESTINATION ${dlbridge_cmake_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/dlbridgeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)  # before 1.0 a minor version may break
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/dlbridgeConfig.cmake ${CMAKE_CURRENT_BINARY_DIR}/dlbridgeConfigVersion.cmake
  DESTINATION ${dlbridge_cmake_dir})
configure_file(cmake/dlbridge.pc.in dlbridge.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/dlbridge.pc DESTINATION ${dlbridge_pkgconfig_dir})
