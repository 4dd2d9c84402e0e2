// The version of dlbridge. CMakeLists.txt and pyproject.toml read it from here.
#pragma once

#define DLBRIDGE_VERSION "0.1.0"
