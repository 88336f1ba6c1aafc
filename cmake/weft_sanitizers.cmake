# WEFT_SANITIZE instruments everything below, because a sanitizer that sees half of a program reports nonsense.
# weft_sanitizer_environment: the one variable that a test needs so that a finding ends it.
set(weft_sanitizer_environment "")
if(WEFT_SANITIZE STREQUAL "address")
  # The vptr check opens a pipe to probe memory, so it misreports where a test has used up all descriptors.
  set(weft_sanitizer_flags
      -fsanitize=address,undefined -fno-sanitize=vptr -fno-sanitize-recover=all -fno-omit-frame-pointer)
  set(weft_sanitizer_environment
      "ASAN_OPTIONS=abort_on_error=1:detect_leaks=1:detect_stack_use_after_return=1:strict_string_checks=1")
elseif(WEFT_SANITIZE STREQUAL "thread")
  set(weft_sanitizer_flags -fsanitize=thread -fno-omit-frame-pointer)
  set(weft_sanitizer_environment "TSAN_OPTIONS=halt_on_error=1:second_deadlock_stack=1")
elseif(WEFT_SANITIZE)
  message(FATAL_ERROR "WEFT_SANITIZE is '${WEFT_SANITIZE}'; use address, thread or nothing")
endif()
if(WEFT_SANITIZE)
  # The compiler's own symbolizer: one of another version may not read its debug information, and a finding without
  # names and lines helps nobody.
  string(REGEX MATCH "^[0-9]+" major ${CMAKE_CXX_COMPILER_VERSION})
  find_program(WEFT_SYMBOLIZER NAMES llvm-symbolizer-${major} llvm-symbolizer)
  if(WEFT_SYMBOLIZER)
    string(APPEND weft_sanitizer_environment ":external_symbolizer_path=${WEFT_SYMBOLIZER}")
  endif()
  add_compile_options(${weft_sanitizer_flags})
  add_link_options(${weft_sanitizer_flags})
endif()
