# Third-party libraries, all found by pkg-config, so that one list serves the build, weftConfig.cmake and weft.pc.
#
# weft_find_module(NAME [VERSION V] [OPTIONAL]): makes PkgConfig::weft_NAME; without OPTIONAL it must be there.
# weft_link_module(LAYER NAME [VERSION V]): finds it, links it privately and notes it for the package files.
find_package(PkgConfig REQUIRED)
set_property(GLOBAL PROPERTY WEFT_PRIVATE_MODULES "")
set_property(GLOBAL PROPERTY WEFT_PRIVATE_LIBS "")

function(weft_find_module name)
  cmake_parse_arguments(arg "OPTIONAL" "VERSION" "" ${ARGN})
  set(required REQUIRED)
  if(arg_OPTIONAL)
    set(required "")
  endif()
  set(wanted ${name})
  if(arg_VERSION)
    set(wanted "${name}>=${arg_VERSION}")
  endif()
  if(NOT TARGET PkgConfig::weft_${name})
    pkg_check_modules(weft_${name} ${required} QUIET IMPORTED_TARGET GLOBAL ${wanted})
  endif()
  set(weft_${name}_FOUND ${weft_${name}_FOUND} PARENT_SCOPE)
endfunction()

function(weft_link_module layer name)
  weft_find_module(${name} ${ARGN})
  target_link_libraries(weft_${layer} PRIVATE PkgConfig::weft_${name})
  get_property(modules GLOBAL PROPERTY WEFT_PRIVATE_MODULES)
  if(NOT name IN_LIST modules)
    set_property(GLOBAL APPEND PROPERTY WEFT_PRIVATE_MODULES ${name})
    set_property(GLOBAL APPEND PROPERTY WEFT_PRIVATE_LIBS ${weft_${name}_LDFLAGS})
  endif()
endfunction()
