# Included by CMakeLists.txt: weft_add_build_info(TARGET) makes <weft_build_info.hpp> for TARGET, with WEFT_COMMIT and
# WEFT_COMPILER. It is made anew at build time, because a commit does not make CMake configure again: the target runs
# this file as a script, which writes OUTPUT if it would change.
if(CMAKE_SCRIPT_MODE_FILE)
  set(commit "")
  find_program(GIT git)
  if(GIT AND EXISTS ${SOURCE}/.git)
    execute_process(COMMAND ${GIT} -C ${SOURCE} --git-dir=${SOURCE}/.git
                            describe --always --dirty --exclude=* --abbrev=12
                    OUTPUT_VARIABLE commit ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE)
  endif()
  if(NOT commit)
    set(commit unknown)
  endif()
  file(CONFIGURE OUTPUT ${OUTPUT} CONTENT
"// What was built from what; made by cmake/weft_build_info.cmake.
#pragma once

#define WEFT_COMMIT \"${commit}\"
#define WEFT_COMPILER \"${COMPILER}\"
")
  return()
endif()

function(weft_add_build_info target)
  set(folder ${PROJECT_BINARY_DIR}/build_info)
  file(MAKE_DIRECTORY ${folder})
  if(NOT TARGET weft_build_info)
    add_custom_target(weft_build_info
      COMMAND ${CMAKE_COMMAND} -D SOURCE=${PROJECT_SOURCE_DIR} -D OUTPUT=${folder}/weft_build_info.hpp
              "-DCOMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
              -P ${PROJECT_SOURCE_DIR}/cmake/weft_build_info.cmake
      BYPRODUCTS ${folder}/weft_build_info.hpp COMMENT "" VERBATIM)
  endif()
  add_dependencies(${target} weft_build_info)
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
