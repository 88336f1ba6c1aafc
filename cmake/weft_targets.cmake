# weft_add_layer(LAYER SOURCES FILE... [LINK TARGET...]): the library weft_LAYER, seen by others as weft::LAYER.
function(weft_add_layer layer)
  cmake_parse_arguments(arg "" "" "SOURCES;LINK" ${ARGN})
  set(target weft_${layer})
  if(NOT arg_SOURCES)  # TRANSITION
    file(CONFIGURE OUTPUT ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp CONTENT "")
    set(arg_SOURCES ${CMAKE_CURRENT_BINARY_DIR}/empty.cpp)
  endif()
  add_library(${target} ${arg_SOURCES})
  add_library(weft::${layer} ALIAS ${target})
  target_compile_features(${target} PUBLIC cxx_std_20)
  target_include_directories(${target} PUBLIC
    $<BUILD_INTERFACE:${PROJECT_BINARY_DIR}/include> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
  target_link_libraries(${target} PUBLIC ${arg_LINK} PRIVATE $<BUILD_INTERFACE:weft_warnings>)
  # Assertions name files by the spelling of the include line, not by where this tree happens to lie.
  target_compile_options(${target} PRIVATE
    -fmacro-prefix-map=${PROJECT_SOURCE_DIR}/= -fmacro-prefix-map=${PROJECT_BINARY_DIR}/include/weft/=)
  set_target_properties(${target} PROPERTIES
    INSTALL_RPATH $ORIGIN EXPORT_NAME ${layer} VERSION ${PROJECT_VERSION}
    SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
  weft_add_header_check(${layer})
endfunction()

# weft_add_program(NAME SOURCES FILE... [LINK TARGET...] [MODULES NAME...] [INSTALL]): build/<preset>/bin/NAME.
# MODULES are pkg-config names; they stay inside the program.
function(weft_add_program name)
  cmake_parse_arguments(arg "INSTALL" "" "SOURCES;LINK;MODULES" ${ARGN})
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_LINK} weft_warnings)
  foreach(module IN LISTS arg_MODULES)
    weft_find_module(${module})
    target_link_libraries(${name} PRIVATE PkgConfig::weft_${module})
  endforeach()
  set_target_properties(${name} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin INSTALL_RPATH $ORIGIN/../${CMAKE_INSTALL_LIBDIR})
  if(arg_INSTALL AND WEFT_INSTALL)
    install(TARGETS ${name} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
  endif()
endfunction()
