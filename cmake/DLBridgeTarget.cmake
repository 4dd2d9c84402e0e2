# dlbridge::dlbridge, the header-only SDK, and its installation: inside the package folder of a wheel, or under a
# prefix by a plain `cmake --install`.
include(CMakePackageConfigHelpers)

add_library(dlbridge INTERFACE)
add_library(dlbridge::dlbridge ALIAS dlbridge)
target_compile_features(dlbridge INTERFACE cxx_std_20)

if(SKBUILD)
  set(dlbridge_include_dir dlbridge/include)
  set(dlbridge_cmake_dir dlbridge/cmake)
else()
  set(dlbridge_include_dir include)
  set(dlbridge_cmake_dir lib/cmake/dlbridge)
endif()

target_include_directories(dlbridge INTERFACE
  $<BUILD_INTERFACE:${CMAKE_CURRENT_SOURCE_DIR}/bridge/include>
  $<BUILD_INTERFACE:${dlbridge_dlpack_include}>
  $<INSTALL_INTERFACE:${dlbridge_include_dir}>)

# The dlpack.h of this build goes along: with another one the extension and its user could disagree about structs.
install(DIRECTORY bridge/include/ ${dlbridge_dlpack_include}/ DESTINATION ${dlbridge_include_dir}
  FILES_MATCHING PATTERN "*.h")
install(TARGETS dlbridge EXPORT dlbridge)
install(EXPORT dlbridge FILE dlbridgeConfig.cmake NAMESPACE dlbridge:: DESTINATION ${dlbridge_cmake_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/dlbridgeConfigVersion.cmake
  COMPATIBILITY SameMinorVersion ARCH_INDEPENDENT)  # before 1.0 a minor version may break
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/dlbridgeConfigVersion.cmake DESTINATION ${dlbridge_cmake_dir})
