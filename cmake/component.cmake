# component(name FOLDER .. ABOUT .. SOURCES .. HEADERS .. DEPS .. [LINK ..] [COLD] [SHARED ..])
#
# Declares one component of the project: a static library `rndn_<name>`.
#   FOLDER   where its files live, relative to the project's root
#   ABOUT    what it is, in a line: the table of ARCHITECTURE.md is made of it
#   SOURCES  its .cpp files (and generated ones); explicit, no globbing
#   HEADERS  the headers that other components may include; all others in the folder are private
#   DEPS     the other components that its files may include: tests/structure checks every #include
#   LINK     outside libraries (fmt::fmt, ...)
#   COLD     runs a few times for a query at most: Release compiles it with -O1, in half the time
#   SHARED   a name: the component is the shared library build/lib/lib<name>.so instead, for programs that are not the project's. It has what it depends on
#            inside, exports what <name>.map lists, and its headers are included without a folder.
#
# Sources include headers by their path from the project's root: #include "libraries/base/containers/arena.h".

include(CheckLinkerFlag)
find_package(fmt REQUIRED)
find_package(Threads REQUIRED)

check_linker_flag(CXX -fuse-ld=gold RNDN_HAVE_GOLD)  # links the tests, in two thirds of the time, where no other was asked for
if("${CMAKE_EXE_LINKER_FLAGS} ${CMAKE_CXX_FLAGS}" MATCHES "fuse-ld|flto")
  set(RNDN_HAVE_GOLD OFF)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)  # tools/check-clang and editors read them
# Components go into a shared library, too. Hidden symbols keep their code what it would be in a program: calls and addresses without detours.
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
option(RNDN_WERROR "Treat warnings as errors" OFF)
option(RNDN_STATIC "Link programs statically, so that they run where nothing is installed" OFF)
set(RNDN_SANITIZE "" CACHE STRING "Sanitizers to build with, as -fsanitize= takes them")

# Options of every target of the project; carried by the targets, not set globally. GCC 12 warns falsely about std::string (its bug
# 105651): by -Wrestrict, and by the other three behind the precompiled headers of Release.
set(false_warnings -Wno-restrict $<$<CONFIG:Release>:-Wno-stringop-overflow> $<$<CONFIG:Release>:-Wno-stringop-overread> $<$<CONFIG:Release>:-Wno-array-bounds>)
# GCC collects garbage whenever its heap has grown by 128 MB: at 512 MB a build takes a tenth less, and a compiler 600 MB for 470.
set(compile_faster "$<$<COMPILE_LANG_AND_ID:CXX,GNU>:--param=ggc-min-heapsize=524288>")
add_library(rndn_options INTERFACE)
target_compile_features(rndn_options INTERFACE cxx_std_20)
target_compile_options(rndn_options INTERFACE -Wall -Wextra -Wno-missing-field-initializers "$<$<CXX_COMPILER_ID:GNU>:${false_warnings}>" ${compile_faster} -fno-math-errno -ffp-contract=off)
target_include_directories(rndn_options INTERFACE ${CMAKE_SOURCE_DIR})
if(RNDN_STATIC)  # Debian has no libfmt.a
  target_link_libraries(rndn_options INTERFACE fmt::fmt-header-only Threads::Threads)
else()
  target_link_libraries(rndn_options INTERFACE fmt::fmt Threads::Threads)
endif()
if(RNDN_WERROR)
  target_compile_options(rndn_options INTERFACE -Werror)
endif()
if(RNDN_SANITIZE)
  target_compile_options(rndn_options INTERFACE -fsanitize=${RNDN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(rndn_options INTERFACE -fsanitize=${RNDN_SANITIZE})
endif()
option(RNDN_FUZZ "Build libFuzzer targets (clang)" OFF)
if(RNDN_FUZZ)  # all of the project tells the fuzzer what it covers
  target_compile_options(rndn_options INTERFACE -fsanitize=fuzzer-no-link)
  target_compile_definitions(rndn_options INTERFACE RNDN_FUZZ)
endif()
if(RNDN_STATIC)
  target_link_options(rndn_options INTERFACE -static-libstdc++ -static-libgcc)
endif()

# The release preset compiles the sources of a target sixteen at a time (CMAKE_UNITY_BUILD): half the time of a build. So a name of one file's own stands in no
# other file of its target; tests have a namespace per file. -DCMAKE_UNITY_BUILD=OFF compiles each alone, as the preset dev does.
#
# Headers of the standard library, fmt and GoogleTest are parsed once for all components and once for all tests (whose -O0 needs its own), those of the
# runtime's interface once for its tests: a quarter of a build's time. Files include what they use all the same; -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON shows whether they do (and lets ccache work).
set(common_headers <algorithm> <array> <atomic> <bit> <chrono> <cstdint> <cstring> <functional> <map> <memory> <mutex> <optional> <set> <span> <string> <string_view>
  <thread> <unordered_map> <utility> <variant> <vector> <fmt/format.h>)
set(test_headers <gtest/gtest.h> <gmock/gmock.h> ${common_headers} <cmath> <filesystem> <fstream> <random> <sstream>)

# precompiled(TARGET KIND HEADERS ..): the first target of a kind makes the header, the others of that kind reuse it.
function(precompiled target kind)
  if(NOT CMAKE_BUILD_TYPE STREQUAL "Release")  # GCC 12 crashes on some files with -g and a precompiled header
    return()
  endif()
  get_property(first GLOBAL PROPERTY RNDN_PRECOMPILED_${kind})
  if(first)
    target_precompile_headers(${target} REUSE_FROM ${first})
  else()
    target_precompile_headers(${target} PRIVATE ${ARGN})
    set_property(GLOBAL PROPERTY RNDN_PRECOMPILED_${kind} ${target})
  endif()
endfunction()

function(component name)
  cmake_parse_arguments(C "COLD" "FOLDER;ABOUT;SHARED" "SOURCES;HEADERS;DEPS;LINK" ${ARGN})
  set(target rndn_${name})
  if(C_COLD)
    set(cold _cold)  # precompiled headers are of one level of optimisation
  else()
    set(cold)
  endif()
  if(C_SHARED)
    set(exports ${CMAKE_CURRENT_SOURCE_DIR}/${C_SHARED}.map)
    add_library(${target} SHARED ${C_SOURCES})
    set_target_properties(${target} PROPERTIES OUTPUT_NAME ${C_SHARED} LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib LINK_DEPENDS ${exports})
    target_link_options(${target} PRIVATE -Wl,--version-script=${exports})
    target_include_directories(${target} INTERFACE ${CMAKE_CURRENT_SOURCE_DIR})
    set(scope PRIVATE)
  elseif(C_SOURCES)
    add_library(${target} STATIC ${C_SOURCES})
    precompiled(${target} component${cold} ${common_headers})
    set(scope PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(scope INTERFACE)
  endif()
  target_link_libraries(${target} ${scope} rndn_options ${C_LINK})
  if(C_COLD)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  endif()
  foreach(dep ${C_DEPS})
    target_link_libraries(${target} ${scope} rndn_${dep})
  endforeach()
  if(C_ABOUT MATCHES ";")
    message(FATAL_ERROR "component(${name} ..): ABOUT is a list item of the table of components and has no semicolon")
  endif()
  string(REPLACE ";" "," deps "${C_DEPS}")
  string(REPLACE ";" "," headers "${C_HEADERS}")
  set_property(GLOBAL APPEND PROPERTY RNDN_COMPONENTS "${name}\t${C_FOLDER}\t${deps}\t${headers}\t${C_ABOUT}")
endfunction()

# component_test(name [ASIDE] DEPS .. SOURCES .. [PROGRAM p SUITES ..] [LABELS ..] [LINK ..] [TOGETHER ..] [GATE ..] [SLOW ..] [SAMPLED ..]): a GoogleTest program
# `test_<name>`, its cases registered with CTest, each a process of its own, labelled as LABELS says, else by the name; those of the suites TOGETHER (as --gtest_filter has them), whose set-up
# takes longer than they do, are one process. Those that GATE selects take long for what they prove: their label is `gate`, and `tools/check --quick` leaves them
# out; a suite of TOGETHER that stands in GATE, too, is one such process; those of SLOW are `slow`, which the gate leaves out, too.
# Tests may try a sample of their cases (tests/support/every_case.h). Slow ones try all, and the slow test `<name>.every_case` is those of SAMPLED with all.
# Those of one PROGRAM are the program `test_<p>` together, since half of what a small one compiles is what its headers define; SUITES (as --gtest_filter has them) are its own,
# and the test `<p>.suites` fails where a suite is nobody's.
# One that is put ASIDE is not built for the gate either: the slow test `<name>.all` builds and runs it.
# Tests read their data below RNDN_SOURCE_DIR and find the built programs in RNDN_BIN_DIR.
function(component_test name)
  cmake_parse_arguments(T "ASIDE" "PROGRAM" "SUITES;SOURCES;DEPS;LABELS;LINK;TOGETHER;GATE;SLOW;SAMPLED" ${ARGN})
  find_package(GTest REQUIRED)
  include(GoogleTest)
  set(program test_${name})
  if(T_PROGRAM AND (T_ASIDE OR NOT T_SUITES))
    message(FATAL_ERROR "component_test(${name}): a shared program wants SUITES, and is not ASIDE")
  endif()
  if(T_PROGRAM)
    set(program test_${T_PROGRAM})
  endif()
  if(NOT TARGET ${program})
    add_executable(${program})
    target_link_libraries(${program} PRIVATE rndn_options GTest::gtest GTest::gmock GTest::gtest_main)
    if("runtime" IN_LIST T_DEPS)
      precompiled(${program} runtime_test ${test_headers} ${CMAKE_SOURCE_DIR}/runtime/engine.h)
    else()
      precompiled(${program} test ${test_headers})
    endif()
    target_compile_definitions(${program} PRIVATE $<$<CONFIG:Release>:RNDN_OPTIMIZED>)  # what they test is
    target_compile_options(${program} PRIVATE $<$<CONFIG:Release>:-O0>)  # they compile in 0.6 of the time
    if(RNDN_HAVE_GOLD AND CMAKE_BUILD_TYPE STREQUAL "Release")
      target_link_options(${program} PRIVATE -fuse-ld=gold)
    endif()
    target_compile_definitions(${program} PRIVATE RNDN_SOURCE_DIR="${CMAKE_SOURCE_DIR}" RNDN_BIN_DIR="${CMAKE_BINARY_DIR}/bin")
  endif()
  target_sources(${program} PRIVATE ${T_SOURCES})
  target_link_libraries(${program} PRIVATE ${T_LINK})
  foreach(dep ${T_DEPS})
    target_link_libraries(${program} PRIVATE rndn_${dep})
  endforeach()
  if(T_ASIDE)
    test_aside(${name}.all ${program})
    return()
  endif()
  if(NOT T_LABELS)
    set(T_LABELS ${name})
  endif()
  set(seconds 300)
  if(RNDN_SANITIZE)
    set(seconds 1200)
  endif()
  string(REPLACE ";" ":" suites "${T_SUITES}")
  if(T_SUITES)
    set_property(GLOBAL APPEND PROPERTY RNDN_SHARED_PROGRAMS ${program})
    set_property(GLOBAL APPEND PROPERTY RNDN_SUITES_${program} ${T_SUITES})
  endif()
  string(REPLACE ";" ":" together "${T_TOGETHER}")
  string(REPLACE ";" ":" gate "${T_GATE}")
  string(REPLACE ";" ":" slow "${T_SLOW}")
  gtest_discover_tests(${program} TEST_PREFIX ${name}. TEST_FILTER ${suites}-${together}:${gate}:${slow} TEST_LIST test_${name}_cases DISCOVERY_MODE PRE_TEST PROPERTIES LABELS "${T_LABELS}" TIMEOUT ${seconds})
  if(T_GATE)
    gtest_discover_tests(${program} TEST_PREFIX ${name}. TEST_FILTER ${gate}-${together}:${slow} TEST_LIST test_${name}_gate DISCOVERY_MODE PRE_TEST
      PROPERTIES LABELS gate TIMEOUT ${seconds})
  endif()
  if(T_SLOW)
    gtest_discover_tests(${program} TEST_PREFIX ${name}. TEST_FILTER ${slow} TEST_LIST test_${name}_slow DISCOVERY_MODE PRE_TEST
      PROPERTIES ENVIRONMENT RNDN_EVERY_CASE=1 LABELS slow TIMEOUT 1200)
  endif()
  if(T_SAMPLED)
    string(REPLACE ";" ":" sampled "${T_SAMPLED}")
    add_test(NAME ${name}.every_case COMMAND ${program} --gtest_filter=${sampled})
    set_tests_properties(${name}.every_case PROPERTIES ENVIRONMENT RNDN_EVERY_CASE=1 LABELS slow TIMEOUT 1800)
  endif()
  foreach(suite ${T_TOGETHER})
    string(REPLACE "*" "" suite_name ${suite})
    add_test(NAME ${name}.${suite_name}all COMMAND ${program} --gtest_filter=${suite}-${slow})
    set(labels ${T_LABELS})
    if(suite IN_LIST T_GATE)
      set(labels gate)
    endif()
    set_tests_properties(${name}.${suite_name}all PROPERTIES LABELS "${labels}" TIMEOUT 600 COST 100)
  endforeach()
endfunction()

# For each program of several component_test()s a test that no case of it is left out of all of them.
function(check_suites)
  get_property(programs GLOBAL PROPERTY RNDN_SHARED_PROGRAMS)
  list(REMOVE_DUPLICATES programs)
  foreach(program ${programs})
    get_property(suites GLOBAL PROPERTY RNDN_SUITES_${program})
    string(REPLACE ";" ":" suites "${suites}")
    string(REPLACE "test_" "" name ${program})
    add_test(NAME ${name}.suites COMMAND ${program} --gtest_filter=-${suites})
    set_tests_properties(${name}.suites PROPERTIES LABELS ${name} PASS_REGULAR_EXPRESSION "Running 0 tests")
  endforeach()
endfunction()

# test_aside(NAME TARGET [ARGUMENT ..]): a slow test that builds a program, which nothing else does, and runs it.
function(test_aside name target)
  set_target_properties(${target} PROPERTIES EXCLUDE_FROM_ALL ON)
  string(REPLACE ";" " " arguments "${ARGN}")
  add_test(NAME ${name} COMMAND sh -c "'${CMAKE_COMMAND}' --build '${CMAKE_BINARY_DIR}' --target ${target} && exec '$<TARGET_FILE:${target}>' ${arguments}")
  set_tests_properties(${name} PROPERTIES LABELS slow TIMEOUT 3600 RESOURCE_LOCK build)
endfunction()

# fuzz_target(name SOURCES .. DEPS ..): a libFuzzer program in build/fuzz/bin, where RNDN_FUZZ is on.
function(fuzz_target name)
  if(NOT RNDN_FUZZ)
    return()
  endif()
  cmake_parse_arguments(F "" "" "SOURCES;DEPS" ${ARGN})
  find_package(GTest REQUIRED)  # some share their expectations with tests
  add_executable(${name} ${F_SOURCES})
  target_link_libraries(${name} PRIVATE rndn_options GTest::gtest GTest::gmock)
  target_link_options(${name} PRIVATE -fsanitize=fuzzer)
  target_compile_definitions(${name} PRIVATE RNDN_SOURCE_DIR="${CMAKE_SOURCE_DIR}")
  foreach(dep ${F_DEPS})
    target_link_libraries(${name} PRIVATE rndn_${dep})
  endforeach()
endfunction()

# program(name SOURCES .. DEPS .. [LINK ..]): an executable in build/bin.
function(program name)
  cmake_parse_arguments(P "" "" "SOURCES;DEPS;LINK" ${ARGN})
  string(REPLACE "-" "_" target program_${name})
  add_executable(${target} ${P_SOURCES})
  set_target_properties(${target} PROPERTIES OUTPUT_NAME ${name})
  target_link_libraries(${target} PRIVATE rndn_options ${P_LINK})
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)  # their work is in the components; flags compile in two thirds of the time
  foreach(dep ${P_DEPS})
    target_link_libraries(${target} PRIVATE rndn_${dep})
  endforeach()
endfunction()

# benchmark(name SOURCES .. DEPS .. [LINK ..]): a program that only the target `benchmarks` and its own name build; a slow test builds them.
add_custom_target(benchmarks)
function(benchmark name)
  program(${name} ${ARGN})
  set_target_properties(program_${name} PROPERTIES EXCLUDE_FROM_ALL ON)
  add_dependencies(benchmarks program_${name})
endfunction()

function(write_component_table file)
  get_property(rows GLOBAL PROPERTY RNDN_COMPONENTS)
  string(REPLACE ";" "\n" text "${rows}")
  file(WRITE ${file} "${text}\n")
endfunction()

# The static libraries of this build as targets for another project, which finds what LINK names itself.
function(export_components file)
  get_property(rows GLOBAL PROPERTY RNDN_COMPONENTS)
  set(targets rndn_options)
  foreach(row ${rows})
    string(REGEX REPLACE "\t.*" "" name "${row}")
    list(APPEND targets rndn_${name})
  endforeach()
  export(TARGETS ${targets} FILE ${file})
endfunction()
