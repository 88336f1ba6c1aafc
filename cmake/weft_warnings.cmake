# Warning flags as a target: linked by what Weft builds, never passed on to its users. -Werror is the presets' business.
add_library(weft_warnings INTERFACE)
target_compile_options(weft_warnings INTERFACE -Wall -Wextra -Wpedantic -Wshadow -Wconversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC bug 105651: "text" + std::string is reported as an overlapping copy.
  target_compile_options(weft_warnings INTERFACE -Wno-restrict)
endif()
