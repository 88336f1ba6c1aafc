# Headers, libraries and the files by which find_package(weft) and pkg-config find them.
include(CMakePackageConfigHelpers)

get_property(WEFT_PRIVATE_MODULES GLOBAL PROPERTY WEFT_PRIVATE_MODULES)
list(JOIN WEFT_PRIVATE_MODULES " " WEFT_CONFIG_MODULES)
set(weft_config_dir ${CMAKE_INSTALL_LIBDIR}/cmake/weft)

install(TARGETS weft weft_runtime weft_net weft_coll weft_gpu EXPORT weftTargets
  ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR}
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
install(EXPORT weftTargets NAMESPACE weft:: DESTINATION ${weft_config_dir})

foreach(layer runtime net coll gpu)
  install(DIRECTORY ${PROJECT_SOURCE_DIR}/${layer}/ DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft/${layer}
          FILES_MATCHING PATTERN "*.hpp" PATTERN "launch" EXCLUDE)
endforeach()
install(FILES ${PROJECT_SOURCE_DIR}/weft.hpp DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weft)

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/weftConfig.cmake.in ${PROJECT_BINARY_DIR}/weftConfig.cmake
  INSTALL_DESTINATION ${weft_config_dir} NO_SET_AND_CHECK_MACRO)
write_basic_package_version_file(${PROJECT_BINARY_DIR}/weftConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/weftConfig.cmake ${PROJECT_BINARY_DIR}/weftConfigVersion.cmake
        DESTINATION ${weft_config_dir})

# pkg-config resolves ${pcfiledir}, so the installed tree may be moved.
# A static Weft cannot be linked without its own libraries, so plain --libs names them; --static would add what these
# need when they are static too, which is the business of whoever links a whole program statically.
set(WEFT_PC_LIBS "")
if(NOT BUILD_SHARED_LIBS)
  get_property(WEFT_PC_LIBS GLOBAL PROPERTY WEFT_PRIVATE_LIBS)
  list(JOIN WEFT_PC_LIBS " " WEFT_PC_LIBS)
endif()
file(RELATIVE_PATH WEFT_PC_PREFIX /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" WEFT_PC_PREFIX ${WEFT_PC_PREFIX})
configure_file(${PROJECT_SOURCE_DIR}/cmake/weft.pc.in ${PROJECT_BINARY_DIR}/weft.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/weft.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
