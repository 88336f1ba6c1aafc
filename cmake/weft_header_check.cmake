# weft_add_header_check(LAYER): one generated source per header of the layer, so that each is shown to compile alone.
# The headers are found by a glob on purpose: a header that nobody lists must not escape the check.
function(weft_add_header_check layer)
  if(NOT WEFT_HEADER_CHECK)
    return()
  endif()
  file(GLOB_RECURSE headers RELATIVE ${PROJECT_SOURCE_DIR}/${layer} CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/${layer}/*.hpp)
  set(sources "")
  foreach(header IN LISTS headers)
    string(MAKE_C_IDENTIFIER ${header} stem)
    set(source ${CMAKE_CURRENT_BINARY_DIR}/header_check/${stem}.cpp)
    file(CONFIGURE OUTPUT ${source} CONTENT "#include \"weft/${layer}/${header}\"\n")
    list(APPEND sources ${source})
  endforeach()
  if(sources)
    add_library(weft_${layer}_header_check OBJECT ${sources})
    target_link_libraries(weft_${layer}_header_check PRIVATE weft_${layer} weft_warnings)
    target_compile_options(weft_${layer}_header_check PRIVATE -O0 -g0)  # nobody runs them
  endif()
endfunction()
